"""A job on its nodes: placement of the ranks, session, watch, outcome."""
