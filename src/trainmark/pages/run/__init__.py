"""What a run says: the answer, every figure with its interval and doubts, and how to repeat it."""
