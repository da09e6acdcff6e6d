"""One trial, carried out."""
