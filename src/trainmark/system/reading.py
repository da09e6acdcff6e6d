"""Asking files and programs for text; what cannot be read is None, never an exception."""

from __future__ import annotations

import subprocess
from pathlib import Path

# Ends what hangs; on a laden machine a sound `git` was seen to need more than two seconds.
COMMAND_TIMEOUT_SECONDS = 10.0


def file_text(path: Path) -> str | None:
    """The file's text without surrounding white space; None where it is absent, unreadable or empty."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None


def file_number(path: Path) -> int | None:
    """The whole number that is all of the file, as most of /sys is written."""
    text = file_text(path)
    try:
        return int(text) if text else None
    except ValueError:
        return None


def folder_entries(path: Path) -> list[Path]:
    """The folder's entries by name; none where it is absent or closed to us."""
    try:
        return sorted(path.iterdir())
    except OSError:
        return []


def command_output(*command: str, timeout: float = COMMAND_TIMEOUT_SECONDS) -> str | None:
    """What the program printed; None where it is not installed, failed or took too long."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=True,
            encoding="utf-8",
            errors="replace",
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.rstrip()
