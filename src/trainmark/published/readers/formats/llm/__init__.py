"""Logs of programs that train language models."""
