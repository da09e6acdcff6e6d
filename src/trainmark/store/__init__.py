"""The store: one folder per trial is the truth, atomic and browsable; an index is rebuilt from it at any time."""
