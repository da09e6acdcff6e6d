"""Kernels of our own, in Triton."""
