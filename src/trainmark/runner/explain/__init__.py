"""Profiled trials of a case, and what-ifs that are really made."""
