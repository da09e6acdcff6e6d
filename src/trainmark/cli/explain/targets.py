"""What `trainmark explain` is asked about: cases of runs, traces, folders of profiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from trainmark.store.files import StoreError
from trainmark.store.run import RunFolder, find_run

TRACE_SUFFIXES = (".json", ".json.gz", ".trace", ".gz")


@dataclass(frozen=True)
class CaseTarget:
    """A case of a run; without a name the only one that the run has."""

    run: RunFolder
    case: str | None = None


@dataclass(frozen=True)
class TraceTarget:
    """A trace file, or the folder that profiled ranks wrote into."""

    path: Path


Target = CaseTarget | TraceTarget


def parse_targets(words: Sequence[str], runs: Path) -> tuple[Target, ...]:
    """Return one target, or two to compare: `RUN`, `RUN CASE`, `A B`; each may be `RUN/CASE` or a trace."""
    if len(words) > 2:
        raise click.UsageError("explain takes one target or two to compare; write a case as RUN/CASE.")
    if not words:
        return (CaseTarget(find_run("latest", runs)),)
    first = parse_target(words[0], runs)
    if len(words) == 1:
        return (first,)
    if isinstance(first, CaseTarget) and first.case is None and words[1] in case_names(first.run):
        return (CaseTarget(first.run, words[1]),)
    try:
        return first, parse_target(words[1], runs)
    except StoreError as error:
        if isinstance(first, CaseTarget) and first.case is None:
            known = ", ".join(case_names(first.run)) or "none"
            raise StoreError(
                f"'{words[1]}' is no run, no trace and no case of {first.run.path.name}, which has {known}."
            ) from error
        raise


def parse_target(word: str, runs: Path) -> Target:
    path = Path(word)
    if path.is_file() or (word.endswith(TRACE_SUFFIXES) and not path.is_dir()):
        return TraceTarget(path)
    if any(path.glob("rank*.json")):
        return TraceTarget(path)
    try:
        return CaseTarget(find_run(word, runs))
    except StoreError:
        run, slash, case = word.rstrip("/").rpartition("/")
        if not slash:
            raise
        folder = find_run(run, runs)
        if case not in case_names(folder):
            known = ", ".join(case_names(folder)) or "none"
            raise StoreError(f"{run} has no case '{case}'; it has {known}.") from None
        return CaseTarget(folder, case)


def case_names(run: RunFolder) -> list[str]:
    """Return the cases that a run has trials of, in their order."""
    return list(dict.fromkeys(record.spec.case for record in run.records()))
