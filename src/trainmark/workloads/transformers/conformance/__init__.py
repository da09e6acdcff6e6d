"""The proof that a framework trains a transformer as its float64 reference does."""
