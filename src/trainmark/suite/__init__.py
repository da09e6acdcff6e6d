"""Suites: what to run, as validated YAML, and the plan of trials that follows from it."""
