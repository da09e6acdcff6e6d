"""An explanation whose what-ifs were made and measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from trainmark.base.errors import UserError
from trainmark.explain.advice import Evidence, diagnose
from trainmark.explain.explanation import WhatIf
from trainmark.runner.explain import record
from trainmark.runner.explain.explained import Explained, keep
from trainmark.runner.explain.verify import verify
from trainmark.runner.trial.display import Display


def verify_changes(
    explained: Explained, runs: Path, display: Display, repeats: int, only: Sequence[str] = ()
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
    record.append(done.entries)
    made = {what_if.name: what_if for what_if in done.what_ifs}
    what_ifs = tuple(made.get(what_if.name, what_if) for what_if in explanation.what_ifs)
    evidence = Evidence(situation, what_ifs, explanation.idle, explanation.buckets)
    reasons = [f"{name} was not verified: {reason}" for name, reason in done.unverified.items()]
    verified = replace(
        explanation,
        what_ifs=what_ifs,
        advice=diagnose(evidence),
        notes=(*explanation.notes, *reasons),
    )
    if explained.folder is not None:
        keep(explained.folder, verified)
    return replace(explained, explanation=verified)


def named(what_ifs: Sequence[WhatIf], names: Sequence[str]) -> tuple[WhatIf, ...]:
    """Return the what-ifs of these names, all without a name."""
    by_name = {what_if.name: what_if for what_if in what_ifs}
    if unknown := [name for name in names if name not in by_name]:
        predicted = ", ".join(by_name) or "none"
        raise UserError(f"{unknown[0]!r} is not predicted for this case, these are: {predicted}.")
    return tuple(by_name[name] for name in names or by_name)
