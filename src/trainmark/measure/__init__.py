"""Measure: pure statistics from events to figures. No files, no processes, no frameworks."""
