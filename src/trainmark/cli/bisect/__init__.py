"""The command that bisects."""
