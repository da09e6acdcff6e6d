"""Verification of a packed run: digests, figures recomputed from the events, and values that cannot be."""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmark.measure.figure import TrialFigure
from trainmark.measure.key import Key
from trainmark.store.files import StoreError, read_object, reason_of
from trainmark.store.manifest import (
    MANIFEST,
    SIGNATURE,
    Manifest,
    MemberDigest,
    PackedTrial,
    Signature,
    SignatureState,
    check_signature,
    figure_numbers,
    trial_of,
)
from trainmark.store.recompute import figure_differences, recomputed_figure, same_value
from trainmark.store.run import CLUSTER, NOT_AS_WRITTEN, RUN, RunFolder
from trainmark.store.tarball import LIMITS, UnpackLimits
from trainmark.store.trial import FIGURE, SPEC, TrialRecord, finished_trials, read_record, read_spec
from trainmark.store.unpack import UnpackedRun, changed_members, unpack_unchecked

COUNTS = ("nodes", "devices_per_node", "batch_per_device", "threads")
LARGEST_COUNT = 2**31 - 1
# Clocks differ, and time zones are mistaken.
AHEAD_SECONDS = 86_400.0
CLOCK = "by the clock of the machine that checks it"
NO_MODEL = "cpu"


def impossible_counts(key: Key) -> Iterator[tuple[str, str]]:
    """Yield each count of a key that cannot be, with what is wrong with it."""
    for name in COUNTS:
        value = getattr(key, name)
        if value is not None and not 1 <= value <= LARGEST_COUNT:
            yield f"key.{name}", f"is {value}, which cannot be"
    if key.devices > LARGEST_COUNT:
        yield "key", f"has {key.devices} devices, which cannot be"


def impossible_time(value: float, now: float | None = None) -> str | None:
    """Return what is wrong with a start more than a day ahead: which of the two clocks, nobody can tell."""
    now = time.time() if now is None else now
    if value <= now + AHEAD_SECONDS:
        return None
    return f"is {_moment(value)}, but it is {_moment(now)} {CLOCK}; one of the two clocks is wrong"


def foreign_device(key: Key, environment: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a device that the environment does not have; None where that is not known.

    Not for a run over a cluster: its environment is that of the machine that started it, maybe without GPUs.
    """
    host, devices = environment.get("host"), environment.get("devices")
    cpu = host.get("cpu") if isinstance(host, Mapping) else None
    gpus = devices.get("gpus") if isinstance(devices, Mapping) else None
    if key.device is None or not isinstance(cpu, Mapping) or not isinstance(gpus, list):
        return None
    known = [gpu.get("name") for gpu in gpus if isinstance(gpu, Mapping)]
    known.append(cpu.get("model") or NO_MODEL)
    if key.device in (*known, NO_MODEL) or None in known:
        return None
    return f"is {key.device}, but {', '.join(dict.fromkeys(map(str, known)))} by environment.json"


def _moment(value: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(value))
    except (OverflowError, ValueError, OSError):
        return f"{value:g} s"


@dataclass(frozen=True)
class PackDifference:
    """One thing that is not as it was packed: `member` of which `trial`, and which number where it is one.

    `stored` and `recomputed` are the two values of `place`, as text.
    """

    member: str
    reason: str
    trial: str | None = None
    place: str | None = None
    stored: str | None = None
    recomputed: str | None = None

    @property
    def sentence(self) -> str:
        where = f"{self.member}: " if self.place is None else f"{self.member}: {self.place} "
        return f"{where}{self.reason}."


@dataclass(frozen=True)
class VerifiedTrial:
    """A finished trial; `figure` is recomputed from its events, None where they carry none."""

    name: str
    uuid: str | None
    record: TrialRecord | None
    figure: TrialFigure | None
    differences: tuple[PackDifference, ...] = ()


@dataclass(frozen=True)
class PackVerification:
    manifest: Manifest
    trials: tuple[VerifiedTrial, ...]
    differences: tuple[PackDifference, ...]
    signature: Signature

    @property
    def verified(self) -> bool:
        return not self.differences


def verify(
    file: Path,
    allowed_signers: Path | None = None,
    *,
    limits: UnpackLimits = LIMITS,
    scratch: Path | None = None,
) -> PackVerification:
    """Check a packed run; PackError where it is none. `scratch` is where it is unpacked for that time."""
    with tempfile.TemporaryDirectory(dir=scratch, prefix=".verify-") as folder:
        return verify_into(file, Path(folder) / "run", allowed_signers, limits=limits)


def verify_into(
    file: Path, folder: Path, allowed_signers: Path | None = None, *, limits: UnpackLimits = LIMITS
) -> PackVerification:
    """Like `verify`, and leave the unpacked run in `folder`, which is made, whatever comes of it."""
    unpacked = unpack_unchecked(file, folder, limits)
    signature = check_signature(unpacked.manifest_bytes, unpacked.signature, allowed_signers)
    trials, differences = compare_unpacked(unpacked)
    differences += _signature_differences(signature, asked=allowed_signers is not None)
    return PackVerification(unpacked.manifest, tuple(trials), tuple(differences), signature)


def compare_unpacked(unpacked: UnpackedRun) -> tuple[list[VerifiedTrial], list[PackDifference]]:
    """Return the trials, and everything that does not agree: members, identities, figures."""
    manifest, run = unpacked.manifest, unpacked.run
    differences = [
        PackDifference(name, reason.replace(f"the member {name}", "the file"), trial_of(name))
        for name, reason in changed_members(unpacked)
    ]
    differences += _run_differences(manifest, run)
    listed = {trial.name: trial for trial in manifest.trials}
    digests = trial_digests(unpacked.digests)
    environment = {} if (run.path / CLUSTER).exists() else run.environment
    trials = [verified_trial(folder, listed, digests, environment) for folder in finished_trials(run.trials)]
    differences += [difference for trial in trials for difference in trial.differences]
    for name in listed.keys() - {trial.name for trial in trials}:
        differences.append(PackDifference(MANIFEST, f"it lists {name}, which is not there", name))
    uuids = [trial.uuid for trial in trials if trial.uuid is not None]
    if len(set(uuids)) < len(uuids):
        differences.append(PackDifference(MANIFEST, "two trials have one UUID"))
    return trials, differences


def verified_trial(
    folder: Path,
    listed: Mapping[str, PackedTrial],
    digests: Mapping[str, str],
    environment: Mapping[str, Any],
) -> VerifiedTrial:
    """Recompute one trial and compare it with figure.json, the manifest and the environment of its run."""
    name = f"{folder.parent.name}/{folder.name}"
    member = f"trials/{name}/{FIGURE}"
    try:
        spec = read_spec(folder)
    except StoreError as error:
        wrong = PackDifference(f"trials/{name}/{SPEC}", reason_of(error, folder / SPEC), name)
        return VerifiedTrial(name, None, None, None, (wrong,))
    try:
        record = read_record(folder, spec)
    except StoreError as error:
        wrong = PackDifference(member, reason_of(error, folder / FIGURE), name)
        return VerifiedTrial(name, spec.uuid, None, None, (wrong,))
    figure: TrialFigure | None = None
    differences: list[PackDifference] = []
    if record.figure is not None:
        try:
            figure = recomputed_figure(folder, record)
        except NOT_AS_WRITTEN as error:
            reason = f"does not follow from the events: {str(error).rstrip('.')}"
            differences.append(PackDifference(member, reason, name, "figure"))
    if figure is not None:
        stored = read_object(folder / FIGURE)["figure"]
        differences += [
            _number(member, name, f"figure.{place}", before, after)
            for place, before, after in figure_differences(stored, figure)
        ]
    differences += _record_differences(name, record)
    differences += _impossible(name, record, environment)
    differences += _listed_differences(name, listed.get(name), record, figure, digests.get(name))
    return VerifiedTrial(name, spec.uuid, record, figure, tuple(differences))


def _record_differences(name: str, record: TrialRecord) -> Iterator[PackDifference]:
    """Compare what trial.json and figure.json both hold; a program may start ranks of its own."""
    spec, member = record.spec, f"trials/{name}/{FIGURE}"
    if spec.key is not None:
        before, after = record.key.values(), spec.key.values()
        for place in before.keys() | after.keys():
            if place != "devices_per_node" and before.get(place) != after.get(place):
                yield _number(member, name, f"key.{place}", before.get(place), after.get(place), SPEC)
    for place, before_value, after_value in (
        ("started", record.started, spec.started),
        ("environment", record.environment, spec.fingerprint),
    ):
        if after_value is not None and before_value != after_value:
            yield _number(member, name, place, before_value, after_value, SPEC)


def _impossible(name: str, record: TrialRecord, environment: Mapping[str, Any]) -> Iterator[PackDifference]:
    member = f"trials/{name}/{FIGURE}"
    for place, reason in impossible_counts(record.key):
        yield PackDifference(member, reason, name, place)
    if early := impossible_time(record.started):
        yield PackDifference(member, early, name, "started")
    if foreign := foreign_device(record.key, environment):
        yield PackDifference(member, foreign, name, "key.device")


def _listed_differences(
    name: str,
    listed: PackedTrial | None,
    record: TrialRecord,
    figure: TrialFigure | None,
    digest: str | None,
) -> Iterator[PackDifference]:
    if listed is None:
        yield PackDifference(MANIFEST, f"it does not list {name}", name)
        return
    stored = {"uuid": listed.uuid, "outcome": listed.outcome, "digest": listed.digest}
    actual = {"uuid": record.spec.uuid, "outcome": record.outcome, "digest": digest}
    if figure is not None or record.figure is None:
        numbers = figure_numbers(figure)
        actual |= numbers
        stored |= {place: getattr(listed, place) for place in numbers}
    for place, value in actual.items():
        if not same_value(stored[place], value):
            yield _number(MANIFEST, name, f"{place} of {name}", stored[place], value)


def _run_differences(manifest: Manifest, run: RunFolder) -> Iterator[PackDifference]:
    info = run.info
    if damage := run.damaged.get(RUN):
        yield PackDifference(RUN, damage.reason)
        return
    if reason := impossible_time(info.created):
        yield PackDifference(RUN, reason, None, "created")
    stored = {"uuid": manifest.uuid, "name": manifest.name, "created": manifest.created}
    stored |= {"run_version": manifest.run_version, "run_schema": manifest.run_schema}
    actual = {"uuid": info.uuid, "name": info.name, "created": info.created}
    actual |= {"run_version": info.version, "run_schema": info.schema}
    for place, value in actual.items():
        if not same_value(stored[place], value):
            yield _number(MANIFEST, None, place, stored[place], value, RUN)


def _signature_differences(signature: Signature, asked: bool) -> list[PackDifference]:
    if signature.state is SignatureState.INVALID:
        return [PackDifference(SIGNATURE, f"the signature is not of this {MANIFEST}")]
    if asked and signature.state is SignatureState.UNSIGNED:
        return [PackDifference(SIGNATURE, "the file is not signed, and allowed signers were given")]
    if asked and signature.state is SignatureState.UNKNOWN_SIGNER:
        return [PackDifference(SIGNATURE, f"the key {signature.key} is of no allowed signer")]
    return []


def trial_digests(digests: Mapping[str, MemberDigest]) -> dict[str, str]:
    """Return for each trial the SHA-256 over the names and digests of its members."""
    lines: dict[str, list[str]] = {}
    for name in sorted(digests):
        if (trial := trial_of(name)) is not None:
            lines.setdefault(trial, []).append(f"{digests[name].sha256}  {name}\n")
    return {trial: hashlib.sha256("".join(own).encode()).hexdigest() for trial, own in lines.items()}


def _number(
    member: str, trial: str | None, place: str, stored: Any, recomputed: Any, source: str = "the events"
) -> PackDifference:
    before, after = _text(stored), _text(recomputed)
    reason = f"is {before}, but {after} by {source}"
    return PackDifference(member, reason, trial, place, before, after)


def _text(value: Any) -> str:
    return "nothing" if value is None else f"{value}"[:200]
