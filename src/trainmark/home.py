"""The folder of what belongs to this machine: environments of frameworks, verdicts, fits, reference rates."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """Return `$TRAINMARK_HOME`, or where the XDG base directory rules put a program's data."""
    if named := os.environ.get("TRAINMARK_HOME"):
        return Path(named).absolute()
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data).absolute() / "trainmark"
