"""From a packed file to rows: verified, and every figure computed again from the events."""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from trainmark.base.errors import UserError
from trainmark.base.text import visible
from trainmark.measure.figure import Result
from trainmark.measure.history.series import MEASURED_FACTS, HistorySeries, RunPoint, case_of
from trainmark.measure.key import Key
from trainmark.pages import label
from trainmark.server.database.models import LONG, SHORT
from trainmark.server.database.scrubbed import scrubbed_of
from trainmark.store.observations import series_of_runs
from trainmark.store.overview import trial_rows
from trainmark.store.report import conformance_in, results_of
from trainmark.store.run import RunFolder
from trainmark.store.tarball import LIMITS, UnpackLimits
from trainmark.store.trial import TrialRecord
from trainmark.store.verify import PackVerification, verify_into

REFUSED, TOO_LARGE, CONFLICT, FORBIDDEN = 422, 413, 409, 403


class IngestError(UserError):
    """A packed file that is refused: a sentence, the status of HTTP, and what does not follow."""

    def __init__(self, sentence: str, status: int = REFUSED, differences: tuple[str, ...] = ()) -> None:
        super().__init__(sentence)
        self.status, self.differences = status, differences


@dataclass(frozen=True)
class CheckedResult:
    """One result: the columns of its case, of its result, its facts, and the trials it is made of."""

    case: dict[str, Any]
    result: dict[str, Any]
    facts: dict[str, str]
    trials: tuple[str, ...]


@dataclass(frozen=True)
class CheckedRun:
    """The rows of a run; every number in them was computed from the events."""

    run: dict[str, Any]
    machine: dict[str, Any]
    lines: tuple[CheckedResult, ...]
    trials: tuple[dict[str, Any], ...]
    signer: str | None


MOST_DIFFERENCES = 20
MOST_CASES, MOST_TRIALS = 5_000, 50_000
LONGEST_TEXT = 20_000
LONGEST_COMMAND = 120
DEEPEST, MOST_ITEMS = 12, 5_000
OWN_FACTS = (*MEASURED_FACTS, "commit", "command")
LABEL_FIELDS = tuple(
    name for name in label.DISTINGUISHING_FIELDS if name not in ("workload", "framework_version", "device")
)


def check(
    file: Path, folder: Path, allowed_signers: Path | None, limits: UnpackLimits = LIMITS
) -> CheckedRun:
    """Verify a packed file and return its rows; IngestError where anything does not follow.

    `folder` is made, and left with the unpacked run. With `allowed_signers` one of them must have signed it.
    """
    verification = verify_into(file, folder, allowed_signers, limits=limits)
    if verification.differences:
        sentences = tuple(plain(difference.sentence) for difference in verification.differences)
        raise IngestError(
            f"the file does not verify: {sentences[0]}", differences=sentences[:MOST_DIFFERENCES]
        )
    run = RunFolder(folder)
    records = run.records()
    if run.damaged:
        damage = next(iter(run.damaged.values()))
        raise IngestError(f"the file does not verify: {plain(damage.sentence)}")
    if not records:
        raise IngestError("the run has no finished trial; there is nothing to store.")
    series = series_of_runs([run])
    if len(series) > MOST_CASES or len(records) > MOST_TRIALS:
        raise IngestError(f"a run may have {MOST_CASES:,} cases and {MOST_TRIALS:,} trials at most.")
    return _checked(run, records, series, verification)


def _checked(
    run: RunFolder,
    records: list[TrialRecord],
    series: Iterable[HistorySeries],
    verification: PackVerification,
) -> CheckedRun:
    info = run.info
    outcomes = Counter(record.outcome for record in records)
    hosts = Counter(line.machine for line in series)
    host = hosts.most_common(1)[0][0] if hosts else ""
    devices = Counter(record.key.device or "unknown device" for record in records)
    device = devices.most_common(1)[0][0]
    results = {result.key: result for result in results_of(records)}
    lines = tuple(_line(own, point, results, records, run.facts) for own in series for point in own.points)
    digests = {trial.uuid: trial.digest for trial in verification.manifest.trials}
    return CheckedRun(
        run={
            "uuid": _uuid(verification.manifest.uuid),
            "name": plain(info.name)[:SHORT],
            "suite": plain(info.suite)[:SHORT],
            "about": plain(info.about)[:LONG],
            "created": info.created,
            "version": plain(info.version)[:40],
            "command": plain(info.command)[:LONG],
            "commit": next((line.facts.get("commit") for line in lines if line.facts.get("commit")), None),
            "ok": outcomes["ok"],
            "failed": sum(outcomes.values()) - outcomes["ok"],
            "doubts": sorted({code for line in lines for code in line.result["doubts"]}),
            "environment": plain_value(run.environment),
            "scrubbed": scrubbed_of(verification.manifest),
        },
        machine={
            "digest": hashlib.sha256(f"{host}\n{device}".encode("utf-8", "replace")).hexdigest(),
            "name": plain(host)[:SHORT] or "unknown host",
            "device": plain(device)[:SHORT],
            "facts": _machine_facts(run.environment),
        },
        lines=lines,
        trials=tuple(
            _trial(record, row, digests)
            for record, row in zip(records, trial_rows(run, records), strict=True)
        ),
        signer=_signer(verification),
    )


def _line(
    series: HistorySeries,
    point: RunPoint,
    results: Mapping[Key, Result],
    records: Iterable[TrialRecord],
    reported: Mapping[str, Any],
) -> CheckedResult:
    """A point is one run and one version of the framework: the trials of the same key but for that."""
    version = point.facts.get("framework_version")
    key, own = next(
        (key, result)
        for key, result in results.items()
        if case_of(key) == series.key and (key.framework_version or version) == version
    )
    trials = [record for record in records if record.key == key]
    name, command = trials[0].spec.case, series.command
    conformance = conformance_in(reported.get(name)).mark
    return CheckedResult(
        case={
            "digest": series.id,
            "label": plain(_label(series))[:LONG],
            "workload": plain(series.key.workload)[:SHORT],
            "framework": plain(series.key.framework or "")[:SHORT],
            "precision": plain(series.key.precision or "")[:SHORT],
            "device": plain(series.key.device or "unknown device")[:SHORT],
            "devices": series.key.devices,
            "unit": plain(series.unit)[:40],
            "key": plain_value({**series.key.values(), **({"command": command} if command else {})}),
        },
        result={
            "name": plain(name)[:SHORT],
            "time": point.time,
            "throughput": own.throughput,
            "low": own.interval.low if own.interval else None,
            "high": own.interval.high if own.interval else None,
            "n": own.n,
            "failed": sum(record.outcome != "ok" for record in trials),
            "values": list(point.values),
            "doubts": list(dict.fromkeys(doubt.code.value for doubt in own.doubts)),
            "minor_doubts": [d.code.value for d in own.doubts if d.severity is not d.code.severity],
            "conformance": conformance,
            "step_seconds": own.step_times.p50,
            "memory_bytes": own.memory_bytes,
            "mfu": own.utilisation.value if own.utilisation else None,
            "samples_per_joule": own.samples_per_joule,
            "efficiency": own.efficiency.value if own.efficiency else None,
        },
        facts={
            plain(name)[:SHORT]: plain(value)[: LONG if name == "command" else SHORT]
            for name, value in point.facts.items()
        },
        trials=tuple(_uuid(record.spec.uuid) for record in trials),
    )


def _label(series: HistorySeries) -> str:
    """`gpt2 pytorch fp32 b2 mini 1n1g`, `train 1n1g: python train.py --lr 0.1`: a case in one line."""
    key = series.key
    axes = [name for name, _ in key.axes]
    own = label.series(key, (*axes, *LABEL_FIELDS))
    words = [own, key.topology] if label.framework(key) == key.workload else [key.workload, own, key.topology]
    return " ".join(filter(None, words)) + (f": {series.command[:LONGEST_COMMAND]}" if series.command else "")


def _trial(record: TrialRecord, row: Mapping[str, Any], digests: Mapping[str, str]) -> dict[str, Any]:
    identity = _uuid(record.spec.uuid)
    return {
        "uuid": identity,
        "digest": digests[str(record.spec.uuid)],
        "case": plain(record.spec.case)[:SHORT],
        "repeat": record.spec.repeat,
        "outcome": plain(record.outcome)[:20],
        "detail": plain(record.detail)[:LONG],
        "started": record.started,
        "seconds": record.seconds,
        "throughput": record.figure.throughput if record.figure else None,
        "row": plain_value(dict(row)),
    }


def _signer(verification: PackVerification) -> str | None:
    signer = verification.signature.signer
    return plain(signer)[:SHORT] if signer else None


def _machine_facts(environment: Mapping[str, Any]) -> dict[str, Any]:
    """The sections that describe the machine rather than what ran on it."""
    sections = {name: environment[name] for name in ("host", "devices") if name in environment}
    facts = plain_value(sections)
    return facts if isinstance(facts, dict) else {}


def _uuid(text: str | None) -> str:
    try:
        return str(uuid.UUID(text or ""))
    except ValueError as error:
        raise IngestError(f"'{plain(text or '')[:60]}' is no UUID.") from error


def plain(text: str) -> str:
    """Return text without what hides or reorders, or what a database cannot hold."""
    return visible(text[:LONGEST_TEXT])


def plain_value(value: Any, depth: int = 0) -> Any:
    """Return JSON values with plain text and finite numbers, bounded in depth and size."""
    if depth > DEEPEST:
        return None
    if isinstance(value, Mapping):
        items = list(value.items())[:MOST_ITEMS]
        return {plain(str(name))[:SHORT]: plain_value(item, depth + 1) for name, item in items}
    if isinstance(value, (list, tuple)):
        return [plain_value(item, depth + 1) for item in value[:MOST_ITEMS]]
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, float) and not isfinite(value):
        return None
    return value if isinstance(value, (bool, int, float, type(None))) else plain(str(value))
