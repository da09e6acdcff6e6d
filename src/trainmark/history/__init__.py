"""A case's results over time: pure functions."""
