"""One file a format: each writes the shards of a split, whole or not at all."""
