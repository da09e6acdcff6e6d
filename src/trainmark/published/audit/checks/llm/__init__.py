"""Claims about language models: tokens, operations and utilisation against each other."""
