"""XLA's profiles: the XSpace, the compiled programs within it, and both as a Chrome trace."""
