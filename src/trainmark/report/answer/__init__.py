"""What a report says first: the subject, the figures, the verdict, the doubts each once."""
