"""A run as one file that can be verified."""
