"""Carriers: one file for each way to run a command on a node."""
