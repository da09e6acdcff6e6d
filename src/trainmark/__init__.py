"""Trainmark measures how fast deep-learning training really runs.

This file is imported inside every measured program, down to Python 3.7, through `trainmark.probe`:
it imports nothing itself.
"""

__version__ = "0.1.0"
__all__ = ["load"]


def __getattr__(name):  # type: ignore[no-untyped-def]
    if name == "load":
        from trainmark.store.frame import load

        return load
    raise AttributeError("module 'trainmark' has no attribute {!r}".format(name))
