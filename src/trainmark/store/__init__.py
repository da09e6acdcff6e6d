"""The store: one folder per trial is the truth; an index is rebuilt from them at any time."""
