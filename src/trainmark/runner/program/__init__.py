"""The program of a case: its copy, interpreter and command, and what it answers when asked."""
