"""Processors, memory, disks and limits."""
