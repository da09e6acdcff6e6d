"""Sets that somebody else made."""
