"""A decoder of Llama 3's shape (Grattafiori et al. 2024): one program per framework."""
