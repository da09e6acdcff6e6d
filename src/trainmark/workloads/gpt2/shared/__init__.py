"""What all frameworks share of this family: numpy and the standard library, Python 3.7+."""
