"""The end of a rank's log, where it says why it fell."""

from __future__ import annotations

import re
from pathlib import Path

from trainmark.regular_file import open_regular

TAIL_BYTES = 16384
CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[^\n\t\x20-\x7e\x85\xa0-\U0010ffff]")


def tail(log: Path) -> str:
    """The end of a log as plain text: what a terminal would obey is taken out."""
    try:
        with open_regular(log) as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - TAIL_BYTES))
            return CONTROL.sub("", file.read().decode("utf-8", "replace").replace("\r", "\n"))
    except OSError:
        return ""
