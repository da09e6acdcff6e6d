"""The largest batch that trains."""
