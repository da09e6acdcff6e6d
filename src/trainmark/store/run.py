"""A run on disk: `runs/NAME/` with what was asked, the environment, the code that ran and the trials."""

from __future__ import annotations

import contextlib
import fcntl
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trainmark.store.files import StoreError, read_json, write_json, write_text
from trainmark.store.trial import TrialFolder, TrialRecord, finished_trials, read_trial

RUN, SUITE, ENVIRONMENT, FACTS = "run.json", "suite.yaml", "environment.json", "facts.json"
CLUSTER, NODES = "cluster.json", "nodes.json"
SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,119}")


@dataclass(frozen=True)
class RunInfo:
    """`least` and `most` trials are planned; `folder` is where a user's suite file stood."""

    name: str
    suite: str
    about: str
    created: float
    version: str
    command: str
    least: int
    most: int
    skipped: tuple[tuple[str, str], ...]
    folder: str | None = None


class RunFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.trials = path / "trials"
        self.code = path / "code"

    @classmethod
    def create(cls, path: Path, info: RunInfo, suite: str) -> RunFolder:
        """The info is written last: a folder without it was never a run."""
        run = cls(path)
        try:
            path.mkdir(parents=True)
            write_text(path / SUITE, suite)
            write_json(path / RUN, asdict(info))
        except OSError as error:
            shutil.rmtree(path, ignore_errors=True)
            raise StoreError(f"{path} cannot be written: {error.strerror}; choose another --runs.") from error
        return run

    @property
    def info(self) -> RunInfo:
        found = read_json(self.path / RUN)
        try:
            found["skipped"] = tuple((case, reason) for case, reason in found["skipped"])
            return RunInfo(**found)
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(f"{self.path / RUN} is not a run of this version: {error}.") from error

    @property
    def suite(self) -> str:
        try:
            return (self.path / SUITE).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise StoreError(f"{self.path / SUITE} cannot be read: {error}.") from error

    @property
    def environment(self) -> Any:
        return read_json(self.path / ENVIRONMENT) if (self.path / ENVIRONMENT).exists() else {}

    def keep_environment(self, environment: Any) -> None:
        write_json(self.path / ENVIRONMENT, environment)

    @property
    def facts(self) -> dict[str, dict[str, Any]]:
        """What each framework said of itself before the first trial, by case."""
        return read_json(self.path / FACTS) if (self.path / FACTS).exists() else {}

    def keep_facts(self, facts: Mapping[str, Mapping[str, Any]]) -> None:
        """Beside those of cases that a resumed run no longer holds."""
        write_json(self.path / FACTS, {**self.facts, **facts})

    @property
    def cluster(self) -> dict[str, Any] | None:
        """Where it was run, as it was asked for; None for this machine."""
        return read_json(self.path / CLUSTER) if (self.path / CLUSTER).exists() else None

    @property
    def nodes(self) -> dict[str, Any]:
        """What each node said of itself before the first trial."""
        return read_json(self.path / NODES) if (self.path / NODES).exists() else {}

    def keep_cluster(self, cluster: Mapping[str, Any], nodes: Mapping[str, Any]) -> None:
        write_json(self.path / CLUSTER, cluster)
        write_json(self.path / NODES, nodes)

    def trial(self, case: str, repeat: int) -> TrialFolder:
        return TrialFolder(self.trials / case, repeat)

    def records(self) -> Iterator[TrialRecord]:
        for folder in finished_trials(self.trials):
            yield read_trial(folder)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One harness at a time; the lock goes with the process, however it ends."""
        with (self.path / ".lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise StoreError(f"{self.path} is being run by another trainmark; wait for it.") from error
            yield


def find_run(name: str, runs: Path) -> RunFolder:
    """A run by path, by name below `runs`, or `latest`."""
    if name == "latest":
        known = all_runs(runs)
        if not known:
            raise StoreError(f"there are no runs in {runs}; make one with `trainmark run quick`.")
        return known[-1]
    for path in (Path(name), runs / name):
        if (path / RUN).is_file():
            return RunFolder(path)
    names = [run.path.name for run in all_runs(runs)]
    listed = f"; there are {', '.join(names[-8:])}" if names else ""
    raise StoreError(f"there is no run '{name}' in {runs}{listed}.")


def all_runs(runs: Path) -> list[RunFolder]:
    """Oldest first; folders that hold no readable run are passed over."""
    dated = []
    for path in sorted(runs.iterdir()) if runs.is_dir() else []:
        if (path / RUN).is_file():
            with contextlib.suppress(StoreError):
                dated.append((RunFolder(path).info.created, path))
    return [RunFolder(path) for _, path in sorted(dated)]
