"""Modules of ours as text that any Python on any node can run: the agent, and the programs sent to it."""

from __future__ import annotations

import base64
import zlib
from functools import lru_cache

from trainmark.launch.connect_back import INVITATION
from trainmark.machine.node_program import program

AGENT = "launch.agent.main"
# Reads byte by byte up to the end of the line, so that what follows is left for the agent. No quote that a
# shell minds: it stands between single quotes on the far side of ssh.
BOOT = (
    "import os,base64,zlib;"
    'exec(zlib.decompress(base64.b64decode(os.fdopen(0,"rb",0,closefd=False).readline())))'
)


def boot_command(python: str) -> tuple[str, ...]:
    """Apart from the user's own site packages and variables: the agent is to be the same everywhere."""
    return (python, "-E", "-s", "-c", BOOT)


def connecting_line(invitation: str) -> bytes:
    """For a program that waits for it as for an agent's: it connects back, and waits for the agent there."""
    return _line(f"import os\nos.environ[{INVITATION!r}] = {invitation!r}\n".encode() + _connecting())


def connecting_command(python: str) -> tuple[str, ...]:
    """The same as a command, for a starter that passes on variables but no input."""
    program = base64.b64encode(_connecting()).decode()
    return (python, "-E", "-s", "-c", f'import base64;exec(base64.b64decode("{program}"))')


def _connecting() -> bytes:
    return f"{program('launch.connect_back', (3, 9))}{BOOT}\n".encode()


@lru_cache
def agent_line() -> bytes:
    return _line(program(AGENT, (3, 9)).encode())


def _line(text: bytes) -> bytes:
    """Compress: every byte of the line costs its reader a system call."""
    return base64.b64encode(zlib.compress(text)) + b"\n"
