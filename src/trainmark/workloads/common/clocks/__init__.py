"""Clocks of devices that run behind the host."""
