"""The frameworks' own environments: what is locked, what is installed, and with which interpreter it runs."""
