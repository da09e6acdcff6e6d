"""Change points of a history, with intervals."""
