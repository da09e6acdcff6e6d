"""Reachability, interfaces, ports and clocks."""
