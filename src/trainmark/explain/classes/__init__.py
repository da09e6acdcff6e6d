"""Kernel classes: what a kernel or operator does, by its name and by what launched it."""

CONVOLUTION, MATRIX_PRODUCT, ATTENTION = "convolution", "matrix product", "attention"
NORMALISATION, ELEMENTWISE, REDUCTION = "normalisation", "elementwise", "reduction"
OPTIMISER, COPY, COMMUNICATION, OTHER = "optimiser", "copy", "communication", "other"
PRODUCT_CLASSES = (CONVOLUTION, MATRIX_PRODUCT, ATTENTION)
CLASSES = (
    *PRODUCT_CLASSES,
    *(NORMALISATION, ELEMENTWISE, REDUCTION, OPTIMISER, COPY, COMMUNICATION, OTHER),
)
