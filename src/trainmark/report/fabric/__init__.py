"""The fabric of a run: map, page and text."""
