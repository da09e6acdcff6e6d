"""One file a revision, named by its number."""
