"""One file a format, each with a FORMAT (or a tuple FORMATS); nothing else needs to know of it."""
