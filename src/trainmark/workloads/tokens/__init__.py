"""Token files, and batches of sequences from them: numpy and the standard library, Python 3.7+."""
