"""What `trainmark explain` shows: terminal, Markdown, page and JSON."""
