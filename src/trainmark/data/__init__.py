"""Image sets on disk: made, unpacked, converted from format to format, and checked."""
