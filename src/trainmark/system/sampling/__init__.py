"""Samples of processors and GPUs during a trial."""
