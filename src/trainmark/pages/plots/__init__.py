"""The plots of a run as charts, each with the data behind it."""
