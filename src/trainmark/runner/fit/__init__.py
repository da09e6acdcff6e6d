"""The largest batch, or the largest value of an axis, that trains."""
