"""Commits of a git repository between a good and a bad one, each checked out into a worktree of its own."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from trainmark.base.errors import UserError
from trainmark.machine.child_process import run
from trainmark.runner.bisect.subject import BisectSubject, SkippedError
from trainmark.suite.model import Case
from trainmark.view.message import _

GIT_SECONDS, SETUP_SECONDS = 600.0, 3600.0
ABBREVIATED = 12
# What a hook or a shell inside another repository would point git at.
ASTRAY = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR")


@dataclass(frozen=True)
class CommitHistory:
    """`commits` from good to bad along first parents; `prefix` is where in the tree the program runs."""

    repository: str
    prefix: str
    commits: tuple[str, ...]


def commits_between(repository: Path, good: str, bad: str) -> CommitHistory:
    """Return the commits that led from good to bad; of a merge, only itself, not the branch it took in."""
    if not repository.is_dir():
        raise UserError(f"there is no folder {repository}.")
    top = git(repository, "rev-parse", "--show-toplevel", refusal=f"{repository} is no git repository")[0]
    prefix = "".join(git(repository, "rev-parse", "--show-prefix"))
    first, last = (_commit(repository, revision) for revision in (good, bad))
    if first == last:
        raise UserError(f"--good and --bad are the same commit, {first[:ABBREVIATED]}.")
    try:
        git(repository, "merge-base", "--is-ancestor", first, last, refusal="")
    except UserError:
        raise UserError(
            f"{good} (--good) is no ancestor of {bad} (--bad); --good is the earlier commit, also where the "
            "later one is faster."
        ) from None
    after = git(repository, "rev-list", "--first-parent", "--reverse", f"{first}..{last}")
    return CommitHistory(top, prefix, (first, *after))


def uncommitted(repository: Path) -> int:
    """Return the number of tracked files whose changes are in no commit."""
    return len(git(repository, "status", "--porcelain", "--untracked-files=no"))


def _commit(repository: Path, revision: str) -> str:
    (name,) = git(
        repository,
        *("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"),
        refusal=f"there is no commit '{revision}' in {repository}",
    )
    return name


def git(folder: Path, *words: str, refusal: str | None = None) -> list[str]:
    """Return what git prints; UserError with `refusal`, or git's last line, where it fails."""
    lines: list[str] = []
    environment = {name: value for name, value in os.environ.items() if name not in ASTRAY}
    try:
        ended = run(["git", *words], lines.append, limit=GIT_SECONDS, environment=environment, folder=folder)
    except FileNotFoundError as error:
        raise UserError("git is not installed; bisecting commits needs it.") from error
    if ended.code != 0:
        raise UserError(f"{refusal}." if refusal is not None else f"git {words[0]}: {ended.last_line}.")
    return lines


class CommitSubjects:
    """The commits as subjects.

    Worktrees belong to a clone in the bisection's folder that borrows the repository's objects: nothing is
    written into the repository itself.
    """

    kind = "commits"

    def __init__(self, case: Case, history: CommitHistory, folder: Path, setup: str | None = None) -> None:
        self.subject = Path(history.repository).name
        self.names = tuple(commit[:ABBREVIATED] for commit in history.commits)
        self._case, self._history, self._setup = case, history, setup
        self._folder = folder.absolute()
        self._clone = self._folder / "clone"

    def prepare(self, items: tuple[int, ...]) -> BisectSubject:
        name, commit = self.names[items[0]], self._history.commits[items[0]]
        place, whole = self._folder / name, self._folder / f"{name}.ready"
        if not whole.is_file():
            self._check_out(commit, place)
            self._set_up(place)
            whole.touch()
        folder = place / self._history.prefix
        if not folder.is_dir():
            raise SkippedError(_("it has no folder {folder}", folder=self._history.prefix))
        return BisectSubject(name, self._case, folder=folder)

    def release(self, used: set[int]) -> None:
        for item, name in enumerate(self.names):
            if item not in used and (self._folder / f"{name}.ready").is_file():
                (self._folder / f"{name}.ready").unlink()
                git(self._clone, "worktree", "remove", "--force", str(self._folder / name))

    def notes(self, culprit: int, previous: int) -> tuple[str, ...]:
        commit = self._history.commits[culprit]
        repository = Path(self._history.repository)
        line = git(repository, "show", "--no-patch", "--format=%h %an, %as: %s", commit)
        files = git(repository, "diff", "--stat", f"{commit}^1", commit)
        return (*line[:1], *(part.strip() for part in files[-1:]))

    def _check_out(self, commit: str, place: Path) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        if not (self._folder / "clone.ready").is_file():
            shutil.rmtree(self._clone, ignore_errors=True)
            git(
                self._folder,
                *(
                    "clone",
                    "--quiet",
                    "--shared",
                    "--no-checkout",
                    self._history.repository,
                    str(self._clone),
                ),
            )
            (self._folder / "clone.ready").touch()
        shutil.rmtree(place, ignore_errors=True)
        git(self._clone, "worktree", "prune")
        try:
            git(self._clone, "worktree", "add", "--quiet", "--force", "--detach", str(place), commit)
        except UserError as error:
            reason = str(error).rstrip(".")
            raise SkippedError(_("it cannot be checked out: {reason}", reason=reason)) from error

    def _set_up(self, place: Path) -> None:
        if self._setup is None:
            return
        ended = run(
            ["sh", "-c", self._setup], lambda _: None, limit=SETUP_SECONDS, together=True, folder=place
        )
        if ended.code != 0:
            reason = ended.last_line.rstrip(".")
            raise SkippedError(_("its set-up failed: {reason}", reason=reason))
