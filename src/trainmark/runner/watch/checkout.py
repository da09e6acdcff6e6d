"""A user's program as it was at a commit, beside the one that is being worked on."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

from trainmark.base.errors import UserError
from trainmark.machine.reading import command_output


def extract_commit(folder: Path, commit: str, place: Path, run: str) -> Path:
    """Unpack the files of a commit into `place`, and return what corresponds to `folder` there.

    By `git archive`, so that the repository gets no further worktree, and what is not committed stays where
    it is.
    """
    prefix = command_output("git", "-C", str(folder), "rev-parse", "--show-prefix")
    top = command_output("git", "-C", str(folder), "rev-parse", "--show-toplevel")
    if top is None:
        raise UserError(
            f"{folder} is in no git repository any more; commit {commit[:12]} of {run} is not there."
        )
    if command_output("git", "-C", top, "rev-parse", "--verify", f"{commit}^{{commit}}") is None:
        raise UserError(f"{top} does not have commit {commit[:12]} of {run}; fetch it and try again.")
    place.mkdir(parents=True)
    with subprocess.Popen(["git", "-C", top, "archive", commit], stdout=subprocess.PIPE) as archive:
        assert archive.stdout is not None
        try:
            with tarfile.open(fileobj=archive.stdout, mode="r|") as files:
                files.extractall(place, filter="data")
        except tarfile.TarError as error:
            raise UserError(f"commit {commit[:12]} of {run} cannot be unpacked: {error}.") from error
    return place / (prefix or "").strip()
