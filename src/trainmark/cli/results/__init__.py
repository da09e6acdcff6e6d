"""`trainmark report`, `compare`, `list`, `show`, `query`, `export` and `forecast`."""
