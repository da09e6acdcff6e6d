"""One trial: its trace, steady window, figure and doubts."""
