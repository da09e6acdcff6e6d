"""What the bytes of a picture say of it, one file a format; nothing is decoded, nothing raises."""
