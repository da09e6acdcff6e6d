"""Interpreters, packages and the dataset."""
