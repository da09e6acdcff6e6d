"""A measurement in a process of its own, so that its memory is not mixed with anyone else's."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any


def run(module: str, *arguments: str) -> dict[str, Any]:
    """What `python -m module arguments` prints as its one line of JSON."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        stdout=subprocess.PIPE,
        check=True,
        cwd=Path(__file__).resolve().parent.parent,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def memory_peak_mb() -> float:
    """Of this process since it started its program; `ru_maxrss` would still know the parent's."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return int(kilobytes) * 1024 / 1e6
