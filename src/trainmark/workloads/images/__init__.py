"""Images from disk into a training step: the same order and the same crops in every framework.

Runs inside every framework's interpreter: numpy and the standard library at import time, Python 3.7+.
"""
