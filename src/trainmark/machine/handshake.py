"""How two programs of ours on different nodes prove to each other that they know a token.

Sent to nodes with what imports it: standard library only, Python 3.8 or later.
"""

from __future__ import annotations

import hashlib
import hmac
import socket

LONGEST_LINE = 512


def proof(token: str, text: str) -> str:
    """That one knows the token, without showing it."""
    return hmac.new(token.encode(), text.encode(), hashlib.sha256).hexdigest()


def read_line(connection: socket.socket) -> str:
    """Byte by byte: what follows is for somebody else."""
    line = b""
    while not line.endswith(b"\n") and len(line) < LONGEST_LINE:
        piece = connection.recv(1)
        if not piece:
            break
        line += piece
    return line.decode("ascii", "replace").rstrip("\n")
