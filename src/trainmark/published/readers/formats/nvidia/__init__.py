"""Logs of NVIDIA's trainers."""
