"""What the bytes of a picture say of it, one file for JPEG, PNG and the rare formats; nothing raises."""
