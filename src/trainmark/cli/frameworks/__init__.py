"""`trainmark frameworks` and `conform`."""
