"""On a node, before the agent: started there together with all other nodes, it connects back to home.

Sent there as text, like the agent: standard library only and Python 3.9 or later.
"""

from __future__ import annotations

import hmac
import json
import os
import socket
import sys
from typing import Any

from trainmark.machine.handshake import proof, read_line

# The variable with the invitation, where it cannot come over the standard input.
INVITATION = "TRAINMARK_CONNECT_BACK"
CONNECT_SECONDS = 20.0


def main() -> None:
    connect_back(json.loads(os.environ.pop(INVITATION)))


def connect_back(invitation: dict[str, Any]) -> None:
    """Make a connection to home our standard input and output; each side proves to know the token."""
    node, nonce, token = os.environ[invitation["node_variable"]], os.urandom(16).hex(), invitation["token"]
    try:
        home = socket.create_connection((invitation["address"], invitation["port"]), CONNECT_SECONDS)
        home.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        shown = {"node": node, "nonce": nonce, "proof": proof(token, f"agent {node} {nonce}")}
        home.sendall(json.dumps(shown).encode() + b"\n")
        if not hmac.compare_digest(read_line(home), proof(token, f"home {node} {nonce}")):
            sys.exit(f"{node}: something else answered at {invitation['address']}")
    except OSError as error:
        sys.exit(f"{node}: cannot connect back to {invitation['address']}: {error.strerror or error}")
    home.setblocking(True)
    if invitation["detached"]:
        detach()
    for stream in (0, 1):
        os.dup2(home.fileno(), stream)
    home.close()


def detach() -> None:
    """Go on in a session of our own, below a process that ends with us.

    Where one node fails, mpirun ends its processes on all of them: that one, and not the agent, which would
    seem lost together with the node that really is.
    """
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    child = os.fork()
    if child:
        os.closerange(3, 64)  # the connection is the child's alone
        os.waitpid(child, 0)
        os._exit(0)  # for anything else the others would be ended too
    os.setsid()
