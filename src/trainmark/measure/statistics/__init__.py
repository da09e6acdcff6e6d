"""Pure numbers: intervals, change points, drift, bootstrap."""
