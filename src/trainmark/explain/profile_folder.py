"""A profile folder: what the ranks of a profiled program left, manifest and traces."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from trainmark.base.errors import UserError
from trainmark.base.files import read_regular
from trainmark.base.typed_json import DecodeError, decode
from trainmark.explain import chrome_trace
from trainmark.explain.profile import Profile
from trainmark.view.message import _

VERSION = 1
TIMING, DETAIL = "timing", "detail"
RANK_FILE = re.compile(r"rank(\d{1,6})\.json")
TRACE_NAME = re.compile(r"[\w.-]{1,100}", re.ASCII)
MOST_MANIFEST_BYTES = 1 << 26
MOST_RANKS = 1 << 16
# How an error of inside.profiler.capture begins where the program took too few steps.
ENDED = "the program ended"


@dataclass(frozen=True)
class CapturedRank:
    """One rank, with step times in seconds.

    `profiled` are steps of the pass that shares are made from: `timing`, or `detail` where there is none;
    `unprofiled` are those timed without the profiler right before and right after it.
    """

    rank: int
    world_size: int
    framework: str
    device: str
    device_name: str | None
    timing: Profile | None
    detail: Profile | None
    unprofiled: tuple[float, ...]
    profiled: tuple[float, ...]
    manifest: dict[str, Any]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Captured:
    """All ranks that left a profile, by rank."""

    ranks: tuple[CapturedRank, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Pass:
    name: str
    trace: str | None = None
    steps: int | None = None
    step_seconds: tuple[float, ...] = ()
    error: str | None = None


@dataclass(frozen=True)
class _Manifest:
    version: int
    rank: int
    world_size: int
    passes: tuple[_Pass, ...]
    framework: str | None = None
    device: str | None = None
    error: str | None = None  # why nothing was profiled, and the framework may be unknown
    unprofiled_step_seconds: tuple[tuple[float, ...], ...] = ()
    host_step_seconds: tuple[float, ...] = ()
    device_name: str | None = None
    framework_version: str | None = None
    samples_per_step: float | None = None
    memory: dict[str, Any] | None = None
    stream_clock: str | None = None
    facts: dict[str, Any] | None = None


def read(folder: Path) -> Captured:
    """Read what all ranks left; UserError, one sentence, where something is damaged or nothing is there.

    A pass that failed or whose trace is not there becomes a note, as long as a rank has another one.
    """
    try:
        files = sorted(
            (int(match[1]), path) for path in folder.iterdir() if (match := RANK_FILE.fullmatch(path.name))
        )
    except OSError as error:
        raise UserError(f"{folder} cannot be read: {error.strerror or error}.") from None
    if not files:
        raise UserError(
            f"{folder} holds no profile: the program ended before its profiled steps, "
            "so that no rank wrote its rank<N>.json."
        )
    manifests = [_manifest(path, rank) for rank, path in files]
    sizes = sorted({manifest.world_size for manifest, _plain in manifests})
    if len(sizes) > 1:
        raise UserError(
            f"{folder} mixes profiles of {sizes[0]} and of {sizes[-1]} ranks: remove those of the older run."
        )
    ranks = tuple(_rank(folder, manifest, plain) for manifest, plain in manifests)
    missing = sorted(set(range(sizes[0])) - {rank.rank for rank in ranks})
    notes = (
        (
            _(
                "{count} of {ranks} ranks left a profile; rank {rank} is missing.",
                count=len(ranks),
                ranks=sizes[0],
                rank=missing[0],
            ),
        )
        if missing
        else ()
    )
    return Captured(ranks, notes)


def _manifest(path: Path, rank: int) -> tuple[_Manifest, dict[str, Any]]:
    try:
        plain = json.loads(read_regular(path, MOST_MANIFEST_BYTES))
        if isinstance(plain, dict) and type(plain.get("version")) is int and plain["version"] > VERSION:
            raise UserError(
                f"{path} was written by a newer Trainmark (version {plain['version']}): update this one."
            )
        manifest = decode(_Manifest, plain)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from None
    except DecodeError as error:
        raise UserError(f"{path} is damaged: {error}.") from None
    except UserError:
        raise
    except (ValueError, RecursionError):
        raise UserError(f"{path} is damaged: it is not valid JSON.") from None
    if problem := _problem(manifest, rank):
        raise UserError(f"{path} is damaged: {problem}.")
    return manifest, plain


def _problem(manifest: _Manifest, rank: int) -> str | None:
    """Say what is wrong with values that have the right types."""
    if manifest.version != VERSION:
        return f"its version is {manifest.version}"
    if manifest.rank != rank:
        return f"it is of rank {manifest.rank}"
    if not rank < manifest.world_size <= MOST_RANKS:
        return f"there is no rank {rank} of {manifest.world_size}"
    if manifest.error is None and manifest.framework is None:
        return "it names no framework"
    if manifest.error is None and manifest.device not in ("cuda", "cpu"):
        return f"its device is {manifest.device!r:.40}, neither cuda nor cpu"
    for entry in manifest.passes:
        if entry.trace is not None and not TRACE_NAME.fullmatch(entry.trace):
            return f"the trace of its pass '{entry.name[:40]}' is no file name"
    lists = [*manifest.unprofiled_step_seconds, *(entry.step_seconds for entry in manifest.passes)]
    lists.append(manifest.host_step_seconds)
    if any(seconds <= 0 for steps in lists for seconds in steps):
        return "a step took no time"
    return None


def _rank(folder: Path, manifest: _Manifest, plain: dict[str, Any]) -> CapturedRank:
    if manifest.error is not None:
        raise UserError(f"{folder} holds no profile of rank {manifest.rank}: {_one_line(manifest.error)}.")
    profiles: dict[str, Profile] = {}
    notes = []
    passes = {entry.name: entry for entry in manifest.passes}
    for name in (TIMING, DETAIL):
        profile, note = _profile(folder, manifest, passes.get(name), name)
        if profile is not None:
            profiles[name] = profile
        if note:
            notes.append(note)
    if not profiles:
        raise UserError(_no_profile(folder, manifest, notes))
    shown = TIMING if TIMING in profiles else DETAIL
    return CapturedRank(
        manifest.rank,
        manifest.world_size,
        manifest.framework or "",
        manifest.device or "",
        manifest.device_name,
        profiles.get(TIMING),
        profiles.get(DETAIL),
        _beside(manifest, shown),
        passes[shown].step_seconds,
        plain,
        tuple(_("Rank {rank}: {note}", rank=manifest.rank, note=note) for note in notes),
    )


def _beside(manifest: _Manifest, name: str) -> tuple[float, ...]:
    """Return the steps from before and after a pass; all of them where it is not known which these are."""
    series = manifest.unprofiled_step_seconds
    if len(series) == len(manifest.passes) + 1:
        number = next(index for index, entry in enumerate(manifest.passes) if entry.name == name)
        series = series[number : number + 2]
    return tuple(seconds for steps in series for seconds in steps)


def _no_profile(folder: Path, manifest: _Manifest, notes: Sequence[str]) -> str:
    """Say why a rank left no pass; the usual reason is a program that is too short."""
    errors = [entry.error or "" for entry in manifest.passes]
    if errors and all(error.startswith(ENDED) for error in errors):
        steps = (manifest.facts or {}).get("steps_taken")
        needed = f"; a profile takes {steps} steps after the measured ones" if type(steps) is int else ""
        return f"{ENDED} before its profiled steps were over{needed}: let it train longer."
    reasons = "; ".join(note.rstrip(".") for note in notes) or "it has no passes"
    return f"{folder} holds no usable profile of rank {manifest.rank}: {reasons}."


def _profile(
    folder: Path, manifest: _Manifest, entry: _Pass | None, name: str
) -> tuple[Profile | None, str | None]:
    """Return the profile of a pass, or a note why there is none; a CPU has no timing pass."""
    if entry is None:
        expected = name == DETAIL or manifest.device == "cuda"
        return None, _("there is no {name} pass.", name=name) if expected else None
    if entry.error is not None:
        return None, _("the {name} pass failed: {error}.", name=name, error=_one_line(entry.error))
    if entry.trace is None or not (folder / entry.trace).exists():
        return None, _("the trace of the {name} pass is missing.", name=name)
    beside = _beside(manifest, name)
    profile = chrome_trace.read(folder / entry.trace, fmean(beside) if beside else None)
    if manifest.device == "cuda" and profile.device == "cpu":
        note = _("the {name} pass recorded no kernels; may this user profile the GPU?", name=name)
        return None, note
    return profile, None


def _one_line(sentence: str) -> str:
    return " ".join(sentence.split())[:300].rstrip(".")
