"""What runs on a node: sent there as text, so standard library only and Python 3.9 or later."""
