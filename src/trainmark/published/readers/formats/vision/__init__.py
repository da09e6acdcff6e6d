"""Logs of programs that train detectors, classifiers and segmenters."""
