"""Python, packages, libraries and commits."""
