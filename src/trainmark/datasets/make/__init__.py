"""A generated stand-in for ImageNet: classes told apart by outline and texture, never by colour."""
