"""The proof that a framework trains this ResNet-50: a float64 reference, and what may differ from it."""
