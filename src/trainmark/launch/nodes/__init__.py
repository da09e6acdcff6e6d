"""Nodes: names, hostfiles, addresses."""
