"""Commands of the team's server."""
