"""How long nodes are waited for: the more there are, the longer the slowest of them may take."""

from __future__ import annotations

# How long a silent node is waited for, on either side; well over a lost packet's repetition.
PATIENCE_SECONDS = 8.0
ANSWER_SECONDS = 20.0
# What one node more costs this machine at the start and at the end, where all of them want it at once.
SECONDS_PER_NODE = 0.02


def scaled(seconds: float, nodes: int) -> float:
    return seconds + nodes * SECONDS_PER_NODE
