"""Which commit a folder's files come from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trainmark.system.reading import command_output


@dataclass(frozen=True)
class Git:
    """The commit checked out; `dirty` when tracked files differ from it, None when git did not say."""

    commit: str
    branch: str | None
    dirty: bool | None


def read_git(folder: Path) -> Git | None:
    """The commit of the working tree `folder` lies in; None outside of one."""
    commit = _git(folder, "rev-parse", "--verify", "HEAD")
    if not commit:
        return None
    branch = _git(folder, "symbolic-ref", "--short", "HEAD")
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return Git(commit, branch, None if changes is None else bool(changes))


def _git(folder: Path, *arguments: str) -> str | None:
    # Looking must not write: without this, `status` refreshes the index and may block someone's commit.
    return command_output("git", "--no-optional-locks", "-C", str(folder), *arguments)
