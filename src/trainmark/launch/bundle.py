"""The agent as one line of text: what any Python on any node can run from its standard input."""

from __future__ import annotations

import base64
from functools import lru_cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
AGENT = ("wire", "processes", "log", "output", "places", "files", "network", "samples", "ranks", "main")
# In the order in which they import each other.
MODULES = (
    "events.throttle",
    *(f"launch.agent.{name}" for name in AGENT),
)
# Reads byte by byte up to the end of the line, so that what follows is left for the agent. No quote that a
# shell minds: it stands between single quotes on the far side of ssh.
BOOT = 'import os,base64;exec(base64.b64decode(os.fdopen(0,"rb",0,closefd=False).readline()))'
LOADER = """
import sys, types
if sys.version_info < (3, 9):
    sys.exit("its Python is " + sys.version.split()[0] + "; name one of 3.9 or later in the inventory")
for name, source in {sources!r}:
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(compile(source, name, "exec"), module.__dict__)
module.main()
"""


def boot_command(python: str) -> tuple[str, ...]:
    """Apart from the user's own site packages and variables: the agent is to be the same everywhere."""
    return (python, "-E", "-s", "-c", BOOT)


@lru_cache
def agent_line() -> bytes:
    sources = [
        (f"trainmark.{name}", (PACKAGE / f"{name.replace('.', '/')}.py").read_text(encoding="utf-8"))
        for name in MODULES
    ]
    return base64.b64encode(LOADER.format(sources=sources).encode()) + b"\n"
