"""One file a format: each opens a file as a memory-mapped array, or raises Unfit."""
