"""One training step at a size: layers, buckets, all-reduce, stragglers."""
