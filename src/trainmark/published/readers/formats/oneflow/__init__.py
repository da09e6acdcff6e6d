"""Logs of OneFlow's trainers."""
