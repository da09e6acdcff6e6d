"""Checks of nodes, a file for each subject: every `NodeCheck` in them is run."""
