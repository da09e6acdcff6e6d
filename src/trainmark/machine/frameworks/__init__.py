"""The frameworks' own environments: what is locked, what is installed, and with which interpreter it runs."""

from trainmark.machine.frameworks.installed import (
    FrameworkEnvironment,
    State,
    find,
    fix_of,
    install_hint,
    python_of,
    standing,
)
from trainmark.machine.frameworks.locks import names

__all__ = [
    "FrameworkEnvironment",
    "State",
    "find",
    "fix_of",
    "install_hint",
    "names",
    "python_of",
    "standing",
]
