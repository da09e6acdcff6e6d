"""`trainmark explain`: its targets, and what it prints and writes."""
