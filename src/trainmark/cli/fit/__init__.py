"""`trainmark fit`: the command, and how it is told."""
