"""Readers: what a program printed or emitted → events. One small file a format, in `formats/`."""
