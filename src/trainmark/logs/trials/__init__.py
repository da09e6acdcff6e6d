"""Readers of what a trial left behind, one file each."""
