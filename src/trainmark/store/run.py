"""A run on disk: `runs/NAME/` with what was asked, the environment, the code that ran and the trials.

A trial whose figure is damaged is made again from its events, or set aside.
"""

from __future__ import annotations

import contextlib
import fcntl
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from trainmark.base.files import read_regular, write_text
from trainmark.base.secrets import scrub
from trainmark.base.text import natural_key
from trainmark.measure.key import Key
from trainmark.store.files import Damage, StoreError, decoded, read_object, reason_of, write_json
from trainmark.store.recompute import recovered_record
from trainmark.store.trial import (
    FIGURE,
    LATEST_TIME,
    SPEC,
    TrialFolder,
    TrialRecord,
    TrialSpec,
    finished_trials,
    read_record,
    read_spec,
)

AGAIN = "its figure was computed again from its events"
TO_RESUME = "it was left out, and `trainmark run --resume` measures it again"


def read_trials(run: Path, trials: Path, damaged: dict[str, Damage]) -> list[TrialRecord]:
    """Records in the order of case and repeat; what is wrong with the others goes to `damaged`, by file."""
    records: list[TrialRecord | None] = []
    broken: list[tuple[int, Path, TrialSpec, str]] = []
    for number, folder in enumerate(finished_trials(trials)):
        try:
            spec = read_spec(folder)
        except (StoreError, OSError) as error:
            place = f"{folder.relative_to(run)}/{SPEC}"
            spec = TrialSpec(folder.parent.name, int(folder.name), "", {}, 0, 0)
            damaged[place] = Damage(place, reason_of(error, folder / SPEC))
        try:
            records.append(read_record(folder, spec))
        except (StoreError, OSError) as error:
            records.append(None)
            broken.append((number, folder, spec, reason_of(error, folder / FIGURE)))
    for number, folder, spec, reason in broken:
        place = f"{folder.relative_to(run)}/{FIGURE}"
        try:
            records[number] = _recovered(folder, spec, filter(None, records))
            damaged[place] = Damage(place, reason, AGAIN, recovered=True)
        except StoreError as error:
            damaged[place] = Damage(place, f"{reason}, and {error}", TO_RESUME)
    return [record for record in records if record is not None]


def _recovered(folder: Path, spec: TrialSpec, others: Iterable[TrialRecord]) -> TrialRecord:
    """By its own key, or by that of another trial of its case, which has the same."""
    siblings = [record for record in others if record.spec.case == spec.case]
    key: Key | None = spec.key or (siblings[0].key if siblings else None)
    if key is None or not spec.steps:
        raise StoreError("what was asked for is not known")
    environment = spec.fingerprint or (siblings[0].environment if siblings else "")
    return recovered_record(folder, spec, key, environment)


RUN, SUITE, ENVIRONMENT, FACTS = "run.json", "suite.yaml", "environment.json", "facts.json"
TRIALS, CLUSTER, NODES, ENDED = "trials", "cluster.json", "nodes.json", "ended.json"
SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,119}")
LARGEST_SUITE_BYTES = 16 << 20
# What comes of using a file that somebody changed.
NOT_AS_WRITTEN = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)

T = TypeVar("T")


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
    uuid: str | None = None
    """Which run it is, under whatever name; None before version 2 of the schema."""
    schema: int | None = None
    against: tuple[str, ...] = ()
    """The cases of a comparison, the baseline first."""

    @property
    def of_explain(self) -> bool:
        """Whether its trials were taken by `trainmark explain`, to be looked into: they are no results."""
        words = [word for word in self.command.split()[1:] if not word.startswith("-")]
        return words[:1] == ["explain"]


def taken(
    path: Path, record: str, resume: str = "exists; add --resume to go on with it", name: str = "--name"
) -> StoreError:
    """The refusal to write over a folder; what a start that was killed has left cannot be gone on with."""
    began = (path / record).is_file()
    way = resume if began else f"exists without {record}; remove it if a killed start left it"
    return StoreError(f"{path} {way}, or choose another {name}.")


def new_path(place: Path, name: str, record: str) -> Path:
    """Return the path of a folder that can be made; StoreError for what cannot be a name, or is taken."""
    if not SAFE_NAME.fullmatch(name) or name == "latest":
        what = record.partition(".")[0]
        raise StoreError(f"'{name}' cannot name a {what}; use letters, digits, '.', '_', '+' and '-'.")
    if (place / name).exists():
        raise taken(place / name, record)
    return place / name


class RunFolder:
    """What cannot be read of a run is set aside in `damaged`, by file; the rest of it is used."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.trials = path / TRIALS
        self.code = path / "code"
        self.damaged: dict[str, Damage] = {}

    @classmethod
    def create(cls, path: Path, info: RunInfo, suite: str) -> RunFolder:
        """The info is written last: a folder without it was never a run."""
        try:
            # Whose mkdir succeeds has the folder for itself; nobody else's is ever removed.
            path.mkdir(parents=True)
        except FileExistsError as error:
            raise taken(path, RUN) from error
        except OSError as error:
            raise _unwritable(path, error) from error
        try:
            write_text(path / SUITE, suite)
            write_json(path / RUN, asdict(info))
        except OSError as error:
            shutil.rmtree(path, ignore_errors=True)
            raise _unwritable(path, error) from error
        return cls(path)

    @property
    def info(self) -> RunInfo:
        """Where the file is damaged, what the trials and the folder tell of the run."""
        return self.or_damaged(RUN, self._info, None) or self._info_of_trials()

    def _info(self) -> RunInfo:
        path = self.path / RUN
        info = decoded(RunInfo, read_object(path), path)
        if not 0 <= info.created < LATEST_TIME:
            raise StoreError(f"{path} is damaged: {info.created:g} is no time.")
        return info

    def _info_of_trials(self) -> RunInfo:
        folders, times = list(finished_trials(self.trials)), []
        for folder in folders:
            with contextlib.suppress(StoreError, OSError):
                times.append(read_spec(folder).started)
        # Not the time of the run's folder where it can be helped: a report that is written there changes it.
        known = (time for time in times if time is not None and 0 <= time < LATEST_TIME)
        created = min(known, default=self._modified())
        return RunInfo(self.path.name, "", "", created, "?", "", len(folders), len(folders), ())

    def require_whole(self) -> None:
        """StoreError where the run cannot be gone on with for want of what was asked for."""
        self._info()
        if SUITE in self.damaged or not self.suite.strip():
            raise StoreError(
                f"{self.path / SUITE} cannot be read; without it the run cannot be gone on with."
            )

    @property
    def suite(self) -> str:
        return self.or_damaged(SUITE, self._suite, "")

    def _suite(self) -> str:
        return read_regular(self.path / SUITE, LARGEST_SUITE_BYTES).decode("utf-8")

    @property
    def environment(self) -> dict[str, Any]:
        return self._object(ENVIRONMENT)

    def keep_environment(self, environment: Any) -> None:
        write_json(self.path / ENVIRONMENT, scrub(environment))

    @property
    def has_ended(self) -> bool:
        """Whether nothing was left to run when its last session stopped, given-up cases included."""
        return (self.path / ENDED).exists()

    def mark_running(self) -> None:
        (self.path / ENDED).unlink(missing_ok=True)

    def mark_ended(self, time: float) -> None:
        write_json(self.path / ENDED, {"ended": time})

    @property
    def facts(self) -> dict[str, dict[str, Any]]:
        """What each framework said of itself before the first trial, by case."""
        return self._object(FACTS)

    def keep_facts(self, facts: Mapping[str, Mapping[str, Any]]) -> None:
        """Beside those of cases that a resumed run no longer holds."""
        write_json(self.path / FACTS, {**self.facts, **scrub(facts)})

    @property
    def cluster(self) -> dict[str, Any] | None:
        """Where it was run, as it was asked for; None for this machine, StoreError where it is damaged."""
        return read_object(self.path / CLUSTER) if (self.path / CLUSTER).exists() else None

    @property
    def nodes(self) -> dict[str, Any]:
        """What each node said of itself before the first trial."""
        return self._object(NODES)

    def keep_cluster(self, cluster: Mapping[str, Any], nodes: Mapping[str, Any]) -> None:
        write_json(self.path / CLUSTER, cluster)
        write_json(self.path / NODES, scrub(nodes))

    def _object(self, name: str) -> dict[str, Any]:
        if not (self.path / name).exists():
            return {}
        return self.or_damaged(name, lambda: read_object(self.path / name), {})

    def or_damaged(self, name: str, read: Callable[[], T], otherwise: T) -> T:
        """Return what `read` makes of a file; `otherwise`, and a note of it, where we did not write it so."""
        try:
            return read()
        except NOT_AS_WRITTEN as error:
            reason = reason_of(error, self.path / name)
            if not isinstance(error, (StoreError, OSError)):
                reason = f"it is not as this version writes it: {error!r}"
            self.damaged[name] = Damage(name, reason)
            return otherwise

    def _modified(self) -> float:
        try:
            return self.path.stat().st_mtime
        except OSError:
            return 0.0

    def trial(self, case: str, repeat: int) -> TrialFolder:
        return TrialFolder(self.trials / case, repeat)

    def records(self) -> list[TrialRecord]:
        """Those that can be read, or made again from their events; the others are in `damaged`."""
        return read_trials(self.path, self.trials, self.damaged)

    def case_names(self) -> list[str]:
        """Return the cases that the run has trials of, in their order."""
        return list(dict.fromkeys(record.spec.case for record in self.records()))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One harness at a time; the lock goes with the process, however it ends."""
        with (self.path / ".lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise StoreError(f"{self.path} is being run by another trainmark; wait for it.") from error
            yield


def is_run(path: Path) -> bool:
    """Whether it is a run's folder, also where run.json is lost: what a killed start left has no trial."""
    return (path / RUN).is_file() or any(finished_trials(path / TRIALS))


def find_run(name: str, runs: Path) -> RunFolder:
    """A run by path, by name below `runs`, or `latest`."""
    if name == "latest":
        known = all_runs(runs)
        if not known:
            raise StoreError(f"there are no runs in {runs}; make one with `trainmark run quick`.")
        return next((run for run in reversed(known) if not run.info.of_explain), known[-1])
    for path in (Path(name), runs / name):
        if is_run(path):
            return RunFolder(path)
    names = [run.path.name for run in all_runs(runs)]
    listed = f"; there are {', '.join(names[-8:])}" if names else ""
    raise StoreError(f"there is no run '{name}' in {runs}{listed}.")


def find_case(word: str, runs: Path) -> tuple[RunFolder, str | None]:
    """Return the run that `RUN` or `RUN/CASE` names, and the case."""
    try:
        return find_run(word, runs), None
    except StoreError:
        name, slash, case = word.rstrip("/").rpartition("/")
        if not slash:
            raise
        run = find_run(name, runs)
        if case not in (known := run.case_names()):
            raise StoreError(f"{name} has no case '{case}'; it has {', '.join(known) or 'none'}.") from None
        return run, case


def all_runs(runs: Path) -> list[RunFolder]:
    """Oldest first; one whose info is damaged has the time of its folder."""
    folders = runs.iterdir() if runs.is_dir() else ()
    run_folders = [RunFolder(path) for path in folders if is_run(path)]
    return sorted(run_folders, key=lambda run: (run.info.created, natural_key(run.path.name)))


def _unwritable(path: Path, error: OSError) -> StoreError:
    return StoreError(f"{path} cannot be written: {error.strerror}; choose another --runs.")
