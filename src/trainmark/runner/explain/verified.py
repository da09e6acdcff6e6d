"""An explanation whose what-ifs were made and measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from trainmark.errors import UserError
from trainmark.explain.advice import Evidence, diagnose
from trainmark.runner.explain import record
from trainmark.runner.explain.explained import Explained, keep
from trainmark.runner.explain.verify import verify
from trainmark.runner.trial.display import Display


def verify_changes(explained: Explained, runs: Path, display: Display, repeats: int) -> Explained:
    """Make every change that can be made in interleaved trials, add the errors to this machine's record."""
    case, situation, explanation = explained.case, explained.situation, explained.explanation
    if case is None or situation is None:
        raise UserError("only a case of a run can be changed.")
    done = verify(
        case,
        situation,
        explanation.what_ifs,
        runs,
        device_name=explanation.subject.device or "",
        repeats=repeats,
        display=display,
    )
    record.append(done.entries)
    evidence = Evidence(situation, done.what_ifs, explanation.idle, explanation.buckets)
    reasons = [f"{name} was not verified: {reason}" for name, reason in done.unverified.items()]
    verified = replace(
        explanation,
        what_ifs=done.what_ifs,
        advice=diagnose(evidence),
        notes=(*explanation.notes, *reasons),
    )
    if explained.folder is not None:
        keep(explained.folder, verified)
    return replace(explained, explanation=verified)
