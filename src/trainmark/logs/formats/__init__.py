"""Log formats, one file a trainer."""
