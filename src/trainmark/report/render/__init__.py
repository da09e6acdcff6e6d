"""A whole report: terminal, Markdown, HTML, JSON, CSV."""
