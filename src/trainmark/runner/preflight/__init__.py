"""What is asked and examined before the first trial."""
