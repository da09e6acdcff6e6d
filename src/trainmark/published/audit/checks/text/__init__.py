"""Sentences of a report, what it follows, and what it leaves out."""
