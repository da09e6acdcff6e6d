"""Comparisons that may be looked at after every trial."""
