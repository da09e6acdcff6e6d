"""The frameworks' own environments: what is locked, what is installed, and with which interpreter it runs."""

from trainmark.environments.environment import (
    Environment,
    State,
    find,
    fix_of,
    install_hint,
    python_of,
    standing,
)
from trainmark.environments.locks import names

__all__ = ["Environment", "State", "find", "fix_of", "install_hint", "names", "python_of", "standing"]
