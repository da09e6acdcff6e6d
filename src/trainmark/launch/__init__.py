"""Launch: where a trial runs; start, watch, stop, reap. Knows nothing of what the ranks compute."""
