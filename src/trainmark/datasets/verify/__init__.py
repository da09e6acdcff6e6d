"""Whether a set is what it was."""
