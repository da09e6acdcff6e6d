"""Makes the changes of what-ifs that can be made, in trials that take turns with the case as it is."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from trainmark import __version__
from trainmark.base.errors import UserError
from trainmark.explain.advice import AdviceEvidence, diagnose
from trainmark.explain.explained_trial import Explained, keep_explanation
from trainmark.explain.explanation import Verified, WhatIf
from trainmark.explain.what_if.change import Overrides
from trainmark.explain.what_if.changes import find
from trainmark.explain.what_if.record import VerifiedChange, append_verified
from trainmark.explain.what_if.situation import Situation
from trainmark.launch.options import LaunchOptions
from trainmark.measure.statistics import ratio_interval
from trainmark.runner.prepare import Prepared, prepare_text
from trainmark.runner.progress import NoDisplay, RunDisplay
from trainmark.runner.run import execute, new_run
from trainmark.store.run import RunFolder
from trainmark.store.trial import TrialRecord
from trainmark.suite.model import Case, Command, fields_of
from trainmark.view.message import _

REPEATS = 6  # fewer carry no interval of 95 %
SUITE = "what-if"
OF_STORED_DATA = {"loader": None, "dataset": None, "workers": None, "on_bad": None}
NO_SETTING = _("no setting of this workload makes it")
OWN_PROGRAM = _("it changes the program's own code: make the change, then `trainmark explain` both")


@dataclass(frozen=True)
class ChangesMade:
    """The what-ifs, those that were made with what came of it; `unverified` says why not, by name."""

    what_ifs: tuple[WhatIf, ...]
    entries: tuple[VerifiedChange, ...]
    unverified: Mapping[str, str]
    run: RunFolder | None = None


def verify(
    case: Case,
    situation: Situation,
    what_ifs: Sequence[WhatIf],
    runs: Path,
    *,
    name: str | None = None,
    device_name: str = "",
    repeats: int = REPEATS,
    folder: str | None = None,
    display: RunDisplay | None = None,
    choice: LaunchOptions = LaunchOptions(),  # noqa: B008
) -> ChangesMade:
    """Run the case and every change of it that a suite can say, in turns; nothing runs where none can."""
    display = display or NoDisplay()
    changed, unverified = changed_cases(case, situation, what_ifs)
    if not changed:
        return ChangesMade(tuple(what_ifs), (), unverified)
    text = suite_text([case, *changed.values()], repeats)
    prepared = prepare_text(text, f"{SUITE}.yaml", folder or str(Path.cwd()), (), choice)
    with closing(prepared):
        if case.slug not in {planned.slug for planned in prepared.plan.cases}:
            raise UserError(f"{case.slug} cannot run here any more: {_reasons(prepared)}.")
        run = new_run(prepared, runs, name, f"trainmark explain --verify {case.slug}")
        execute(run, prepared, display)
    skipped = {skip.case.slug: skip.reason for skip in prepared.plan.skipped}
    unverified |= {change: skipped[other.slug] for change, other in changed.items() if other.slug in skipped}
    return held_to_trials(case, situation, what_ifs, changed, unverified, run, device_name or prepared.device)


def _reasons(prepared: Prepared) -> str:
    return (
        "; ".join(sorted({skip.reason.rstrip(".") for skip in prepared.plan.skipped})) or "it is not planned"
    )


def changed_cases(
    case: Case, situation: Situation, what_ifs: Sequence[WhatIf]
) -> tuple[dict[str, Case], dict[str, str]]:
    """Return the case with each change that a suite can make, by its name, and why others cannot be made."""
    changed: dict[str, Case] = {}
    unverified: dict[str, str] = {}
    for what_if in what_ifs:
        change = find(what_if.name)
        overrides = change.overrides(situation) if change else None
        if isinstance(case.workload, Command):
            unverified[what_if.name] = OWN_PROGRAM
        elif not overrides:
            unverified[what_if.name] = NO_SETTING
        else:
            changed[what_if.name] = with_overrides(case, overrides)
    return changed, unverified


def with_overrides(case: Case, overrides: Overrides) -> Case:
    """Return the case with other settings; synthetic data have no loader."""
    settings: dict[str, Any] = dict(overrides)
    if str(settings.get("data", "")).startswith("synthetic"):
        settings |= OF_STORED_DATA
    return replace(case, **settings)


def suite_text(cases: Sequence[Case], repeats: int) -> str:
    """Return a suite of these cases, every setting written out, so that nothing is chosen anew."""
    about = "A case, and what-ifs of it."
    written = [fields_of(case, repeats) for case in cases]
    return yaml.safe_dump({"name": SUITE, "about": about, "cases": written}, sort_keys=False)


def held_to_trials(
    case: Case,
    situation: Situation,
    what_ifs: Sequence[WhatIf],
    changed: Mapping[str, Case],
    unverified: Mapping[str, str],
    run: RunFolder,
    device_name: str,
) -> ChangesMade:
    """Hold the predictions to the trials of a run."""
    records: dict[str, list[TrialRecord]] = {}
    for trial in run.records():
        records.setdefault(trial.spec.case, []).append(trial)
    baseline = rates(records.get(case.slug, ()))
    if not baseline:
        raise UserError(f"no trial of {case.slug} gave a figure: {_failure(records.get(case.slug, ()))}.")
    reasons = dict(unverified)
    verified: dict[str, Verified] = {}
    for name, other in changed.items():
        after = rates(records.get(other.slug, ()))
        if after:
            verified[name] = verified_seconds(situation.step, baseline, after)
        else:
            reasons.setdefault(name, _failure(records.get(other.slug, ())))
    made = tuple(replace(what_if, verified=verified.get(what_if.name)) for what_if in what_ifs)
    today = time.strftime("%Y-%m-%d", time.gmtime())
    entries = tuple(
        VerifiedChange(
            change=what_if.name,
            workload=case.workload_name,
            setting=setting_of(case),
            framework=case.framework or "",
            device=device_name,
            kind=situation.device,
            before=round(situation.step, 7),
            predicted=round(what_if.seconds, 7),
            measured=round(what_if.verified.seconds, 7),
            low=round(what_if.verified.low, 7),
            high=round(what_if.verified.high, 7),
            trials=what_if.verified.trials,
            date=today,
            version=__version__,
            waits_for_host=what_if.waits_for_host,
        )
        for what_if in made
        if what_if.verified is not None
    )
    return ChangesMade(made, entries, reasons, run)


def rates(records: Sequence[TrialRecord]) -> list[float]:
    return [record.figure.throughput for record in records if record.figure is not None]


def verified_seconds(step: float, before: Sequence[float], after: Sequence[float]) -> Verified:
    """Return the step as explained, times by how much the rate changed: drift since then is in neither.

    Rates are in samples a second, so that a larger batch compares with the step as it was.
    """
    seconds = step * statistics.median(before) / statistics.median(after)
    bounds = ratio_interval(before, after)
    low, high = (step * bounds.low, step * bounds.high) if bounds else (seconds, seconds)
    return Verified(seconds, low, high, len(after))


def setting_of(case: Case) -> str:
    """Name a case within its workload and framework: `fp32-b4-1n1g-mini`."""
    names = {case.workload_name, case.framework}
    return "-".join(word for word in case.slug.split("-") if word not in names)


def _failure(records: Sequence[TrialRecord]) -> str:
    return next((f"{record.outcome}: {record.detail}".rstrip(".") for record in records), "it did not run")


def verify_changes(
    explained: Explained, runs: Path, display: RunDisplay, repeats: int, only: Sequence[str] = ()
) -> Explained:
    """Make every change that can be made, or only those named, in interleaved trials; keep the errors."""
    case, situation, explanation = explained.case, explained.situation, explained.explanation
    if case is None or situation is None:
        raise UserError("only a case of a run can be changed.")
    done = verify(
        case,
        situation,
        named(explanation.what_ifs, only),
        runs,
        device_name=explanation.subject.device or "",
        repeats=repeats,
        display=display,
    )
    append_verified(done.entries)
    made = {what_if.name: what_if for what_if in done.what_ifs}
    what_ifs = tuple(made.get(what_if.name, what_if) for what_if in explanation.what_ifs)
    evidence = AdviceEvidence(situation, what_ifs, explanation.idle, explanation.buckets)
    reasons = [
        _("{name} was not verified: {reason}", name=name, reason=reason)
        for name, reason in done.unverified.items()
    ]
    verified = replace(
        explanation,
        what_ifs=what_ifs,
        advice=diagnose(evidence),
        notes=(*explanation.notes, *reasons),
    )
    if explained.folder is not None:
        keep_explanation(explained.folder, verified)
    return replace(explained, explanation=verified)


def named(what_ifs: Sequence[WhatIf], names: Sequence[str]) -> tuple[WhatIf, ...]:
    """Return the what-ifs of these names, all without a name."""
    by_name = {what_if.name: what_if for what_if in what_ifs}
    if unknown := [name for name in names if name not in by_name]:
        predicted = ", ".join(by_name) or "none"
        raise UserError(f"{unknown[0]!r} is not predicted for this case, these are: {predicted}.")
    return tuple(by_name[name] for name in names or by_name)
