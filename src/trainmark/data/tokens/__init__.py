"""Token sets on disk: made, converted from format to format, and checked."""
