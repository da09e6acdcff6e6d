"""Re-runs two sides of a change until the difference is certain."""
