"""`trainmark read`, `audit` and `ledger`: what others measured."""
