"""`trainmark env`, `doctor` and `fabric`."""
