"""What `import trainmark` gives: measuring, reading and comparing from Python. The commands call the same."""
