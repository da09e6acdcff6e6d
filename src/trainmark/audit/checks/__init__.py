"""Checks of a report against itself, by subject; every function `check_…` is one."""
