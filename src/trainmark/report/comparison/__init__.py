"""Runs against a baseline: tables, text and page."""
