"""What the comparisons of all families with their references share; the harness runs it, no program does."""
