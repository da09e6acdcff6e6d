"""Profiles any CUDA program by CUPTI's activity records, which a small library in C writes to a file."""
