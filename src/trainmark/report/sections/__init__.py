"""The sections of a report as plain cells, for every layout."""
