"""Bisects versions, commits and settings."""
