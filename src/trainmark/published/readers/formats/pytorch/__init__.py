"""Logs of trainers in PyTorch."""
