"""A team's server for packed runs."""
