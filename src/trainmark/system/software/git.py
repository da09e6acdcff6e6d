"""Which commit a folder's files come from, and what was changed since."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from trainmark.system.reading import command_output


@dataclass(frozen=True)
class Git:
    """The commit checked out; `dirty` when tracked files differ from it, None when git did not say.

    `changes` tells two differences from the same commit apart: the SHA-256 of `git diff`, shortened.
    """

    commit: str
    branch: str | None
    dirty: bool | None
    changes: str | None = None


def read_git(folder: Path) -> Git | None:
    """The commit of the working tree `folder` lies in; None outside of one."""
    commit = _git(folder, "rev-parse", "--verify", "HEAD")
    if not commit:
        return None
    branch = _git(folder, "symbolic-ref", "--short", "HEAD")
    status = _git(folder, "status", "--porcelain", "--untracked-files=no")
    diff = _git(folder, "diff", "--no-ext-diff", "--no-textconv", "HEAD") if status else None
    digest = hashlib.sha256(diff.encode("utf-8", "replace")).hexdigest()[:12] if diff else None
    return Git(commit, branch, None if status is None else bool(status), digest)


def _git(folder: Path, *arguments: str) -> str | None:
    # Looking must not write: without this, `status` refreshes the index and may block someone's commit.
    return command_output("git", "--no-optional-locks", "-C", str(folder), *arguments)
