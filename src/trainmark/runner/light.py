"""At the end of a run: what it says of its devices' speed of light, and what is known of that from before."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from pathlib import Path

from trainmark.base.files import home
from trainmark.measure.reference_rate import ReferenceRate, is_fused, merge_reference_rates, reference_rates
from trainmark.measure.result import CaseTrial, summarize
from trainmark.store.files import StoreError
from trainmark.store.measurements import read_reference_rates, write_reference_rates
from trainmark.store.run import RunFolder
from trainmark.store.trial import TrialRecord


def keep_run_light(run: RunFolder, note: Callable[[str], None]) -> None:
    """Add the run's reference rates to this machine's, and those of its devices to the run's own folder.

    A report needs none of it, so that whatever goes wrong here is a note and no more.
    """
    records = run.records()
    own = _measured(records, run.info.version)
    troubles: list[str] = []
    machine_rates = _stored_rates(home(), troubles)
    known = merge_reference_rates(
        merge_reference_rates(machine_rates, _stored_rates(run.path, troubles)), own
    )
    if own and (home_light := merge_reference_rates(machine_rates, own)) != machine_rates:
        _keep(home(), home_light, troubles)
    devices = {record.key.device for record in records}
    if of_run := [each for each in known if each.device in devices]:
        _keep(run.path, of_run, troubles)
    if troubles:
        note(f"speed of light: {' '.join(troubles)}")


def _measured(records: Iterable[TrialRecord], version: str) -> tuple[ReferenceRate, ...]:
    """Dated by the last trial of the fused step, so that resuming an old run makes nothing newer."""
    fused = [record for record in records if is_fused(record.key) and record.figure is not None]
    if not fused:
        return ()
    last = max(record.started for record in fused)
    taken = datetime.fromtimestamp(last, timezone.utc).isoformat(timespec="seconds")
    results = summarize([CaseTrial(record.key, record.figure, record.environment) for record in fused])
    return reference_rates(results, taken, version)


def _stored_rates(folder: Path, troubles: list[str]) -> tuple[ReferenceRate, ...]:
    try:
        return read_reference_rates(folder)
    except StoreError as error:
        troubles.append(str(error))
    except OSError as error:
        troubles.append(f"the reference rates in {folder} cannot be read: {error.strerror}.")
    return ()


def _keep(folder: Path, rates: Iterable[ReferenceRate], troubles: list[str]) -> None:
    try:
        write_reference_rates(folder, rates)
    except OSError as error:
        troubles.append(f"the reference rates cannot be written to {folder}: {error.strerror}.")
