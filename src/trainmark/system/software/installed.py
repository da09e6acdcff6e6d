"""Packages of an interpreter and a hash of their contents."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from trainmark.system.reading import file_text

# Below what a node has for all its answers; on a laden machine a Python takes many seconds to start.
PYTHON_SECONDS = 45.0
# What an interpreter is asked: its version, and where it looks for packages.
ABOUT_PYTHON = """
import json, sys
print(json.dumps([".".join(map(str, sys.version_info[:3])), [path for path in sys.path if path]]))
"""
# How an installer works, not what it installed: these lines of a RECORD differ between equal environments.
NOT_CONTENT = re.compile(
    r"^\.\./|\.pyc,|\.dist-info/(INSTALLER|REQUESTED|RECORD|direct_url\.json|uv_cache\.json),"
)


class SlowInterpreterError(Exception):
    """It is there, but what it holds cannot be told: who takes it for absent sends gigabytes in its place."""


def interpreter(path: str, limit: float = PYTHON_SECONDS) -> dict[str, Any] | None:
    """Return version, packages and hash; None where no Python is there. No package is imported."""
    command = [str(Path(path).expanduser()), "-I", "-c", ABOUT_PYTHON]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit)
        version, folders = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise SlowInterpreterError(f"{path} did not answer within {limit:.0f} s") from None
    except (OSError, ValueError):
        return None
    packages, digest = installed(version, folders)
    return {"version": version, "packages": packages, "hash": digest}


def installed(version: str, folders: Iterable[str]) -> tuple[dict[str, str], str]:
    """Return each package's version, and one hash over the Python version and the contents of all RECORDs."""
    packages: dict[str, str] = {}
    records = []
    for folder in folders:
        for info in sorted(Path(folder).glob("*.dist-info")):
            name, _, release = info.name[: -len(".dist-info")].rpartition("-")
            name = re.sub(r"[-_.]+", "-", name).lower()
            if name in packages:
                continue  # hidden by an earlier folder
            packages[name] = release
            lines = (file_text(info / "RECORD") or "").splitlines()
            content = sorted(line for line in lines if not NOT_CONTENT.search(line))
            records.append("\n".join([f"{name} {release}", *content]))
    everything = "\n".join([version, *sorted(records)])
    return packages, hashlib.sha256(everything.encode("utf-8", "replace")).hexdigest()[:16]
