"""At the end of a run: what it says of its devices' speed of light, and what is known of that from before."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from pathlib import Path

from trainmark.environments.place import home
from trainmark.measure.light import Yardstick, is_fused, merged, yardsticks
from trainmark.measure.result import Trial, summarise
from trainmark.store.files import StoreError
from trainmark.store.light import keep_light, kept_light
from trainmark.store.run import RunFolder
from trainmark.store.trial import TrialRecord


def keep_run_light(run: RunFolder, note: Callable[[str], None]) -> None:
    """Adds the run's yardsticks to this machine's, and those of its devices to the run's own folder.

    A report needs none of it, so that whatever goes wrong here is a note and no more.
    """
    records = list(run.records())
    own = _measured(records, run.info.version)
    troubles: list[str] = []
    kept = _kept(home(), troubles)
    known = merged(merged(kept, _kept(run.path, troubles)), own)
    if own and (home_light := merged(kept, own)) != kept:
        _keep(home(), home_light, troubles)
    devices = {record.key.device for record in records}
    if of_run := [each for each in known if each.device in devices]:
        _keep(run.path, of_run, troubles)
    if troubles:
        note(f"speed of light: {' '.join(troubles)}")


def _measured(records: Iterable[TrialRecord], version: str) -> tuple[Yardstick, ...]:
    """Dated by the last trial of the fused step, so that resuming an old run makes nothing newer."""
    fused = [record for record in records if is_fused(record.key) and record.figure is not None]
    if not fused:
        return ()
    last = max(record.started for record in fused)
    taken = datetime.fromtimestamp(last, timezone.utc).isoformat(timespec="seconds")
    results = summarise([Trial(record.key, record.figure, record.environment) for record in fused])
    return yardsticks(results, taken, version)


def _kept(folder: Path, troubles: list[str]) -> tuple[Yardstick, ...]:
    try:
        return kept_light(folder)
    except StoreError as error:
        troubles.append(str(error))
    except OSError as error:
        troubles.append(f"the yardsticks in {folder} cannot be read: {error.strerror}.")
    return ()


def _keep(folder: Path, found: Iterable[Yardstick], troubles: list[str]) -> None:
    try:
        keep_light(folder, found)
    except OSError as error:
        troubles.append(f"the yardsticks cannot be kept in {folder}: {error.strerror}.")
