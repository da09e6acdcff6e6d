"""How numbers, names, words, columns and pages are written."""
