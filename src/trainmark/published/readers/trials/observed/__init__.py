"""What hooks saw of a program that knows nothing of us, as steps with samples and pauses."""
