"""Readers of what a trial of ours left behind."""
