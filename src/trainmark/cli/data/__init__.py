"""`trainmark data`: one file a sub-command."""
