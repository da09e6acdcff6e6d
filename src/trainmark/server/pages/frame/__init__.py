"""What every page has: its frame, language, words, charts and static files."""
