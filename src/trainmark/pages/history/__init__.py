"""A history in the terminal, Markdown and HTML."""
