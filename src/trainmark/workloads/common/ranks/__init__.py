"""How ranks find and join each other."""
