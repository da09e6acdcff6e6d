"""Logs and code that a report shows."""
