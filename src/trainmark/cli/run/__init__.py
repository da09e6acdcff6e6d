"""`trainmark run`, `suites` and `launch-script`."""
