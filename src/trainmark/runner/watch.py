"""Runs the two sides of a change in turns until their difference is certain, or certainly does not matter."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from trainmark.base.text import one_line
from trainmark.launch.launcher import LocalLauncher
from trainmark.measure.ab import ABResult, ABVerdict, Confirmation, FactDifference, judge
from trainmark.runner.interrupts import Interrupts
from trainmark.runner.pairs import PairSide, TrialPair, run_pairs, seconds_of, throughputs_of, unit_of
from trainmark.runner.prepare import Prepared
from trainmark.runner.progress import RunDisplay
from trainmark.runner.run import context_of
from trainmark.runner.session import FAILURES_TO_GIVE_UP
from trainmark.runner.watch_sides import (
    SideSpec,
    WatchFolder,
    WatchPlan,
    create_watch,
    default_name,
    is_program,
    prepare_side,
    spec_of_run,
    variables_of,
    what_runs,
)
from trainmark.store.run import RunFolder
from trainmark.view.message import _, _n

# Recorded facts that come from the suite, the copied code, the interpreter and the put-back variables.
REMADE = ("framework_version", "python", "implementation", "command", "steps", "warmup_steps", "trainmark")
REMADE_BEGINNINGS = ("framework.", "packages.", "variables.")
COMMIT = ("commit", "dirty")
SAME_PROGRAM = _(
    "the two runs differ in nothing that can be put back here, so that measuring them again would compare"
    " this machine with itself"
)


@dataclass(frozen=True)
class WatchLimits:
    """What matters, the probability of a wrong verdict, and the most that may be spent."""

    matters: float = 0.01
    error: float = 0.05
    most_pairs: int = 40
    most_seconds: float | None = None


@dataclass(frozen=True)
class WatchSide:
    spec: SideSpec
    run: RunFolder
    prepared: Prepared


def begin(
    targets: Sequence[tuple[RunFolder, str, str | None]],
    runs: Path,
    limits: WatchLimits,
    differences: Sequence[FactDifference] = (),
    name: str | None = None,
) -> WatchFolder:
    """Make the folder of a new watch; `targets` are run, case and interpreter of before and after."""
    before, after = (spec_of_run(*target) for target in targets)
    with_commits = _program_commits(before, after, targets[0][0])
    remade = tuple(
        replace(difference, remade=_is_remade(difference.name, with_commits)) for difference in differences
    )
    plan = WatchPlan(
        case=before.case,
        before=before,
        after=after,
        matters=limits.matters,
        error=limits.error,
        most_pairs=limits.most_pairs,
        most_seconds=limits.most_seconds,
        seed=0,
        created=time.time(),
        differences=remade,
    )
    folders = [run for run, _, _ in targets]
    return create_watch(runs, name or default_name(), plan, folders, with_commits)


def carry_out(folder: WatchFolder, display: RunDisplay, *, is_new: bool = False) -> tuple[Confirmation, bool]:
    """Run pairs until a verdict or a limit; also returns whether the user stopped it before.

    A new watch that cannot begin, or has nothing to compare, leaves no folder.
    """
    plan = folder.plan
    with folder.locked(), ExitStack() as stack:
        with folder.removed_on_error() if is_new else contextlib.nullcontext():
            sides = [
                WatchSide(spec, run, stack.enter_context(contextlib.closing(prepare_side(spec, run))))
                for spec, run in ((plan.before, folder.before), (plan.after, folder.after))
            ]
        if len({what_runs(side.spec, side.prepared, side.run) for side in sides}) == 1:
            confirmation = confirmation_of(folder, SAME_PROGRAM)
            if is_new:
                folder.remove()
                return replace(confirmation, folder=""), False
            return confirmation, False
        interrupts = stack.enter_context(Interrupts(display.note))
        before, after = (_pair_side(side, display, interrupts) for side in sides)
        for pairs in run_pairs((before, after), plan.seed, plan.most_pairs, interrupts):
            confirmation = confirmation_of(folder)
            if pairs:
                display.note(progress_line(pairs, confirmation.judgement))
            if confirmation.verdict is not ABVerdict.UNDECIDED:
                return confirmation, False
            if reason := stop_reason(plan, pairs):
                return replace(confirmation, reason=reason), False
        return confirmation_of(folder, _("it was stopped")), True


def confirmation_of(folder: WatchFolder, reason: str = "") -> Confirmation:
    """Return what the trials so far say."""
    plan, pairs = folder.plan, folder.pairs()
    throughputs = throughputs_of(pairs)
    judgement = judge(throughputs, matters=plan.matters, error=plan.error)
    return Confirmation(
        case=plan.case,
        before=plan.before.run,
        after=plan.after.run,
        unit=unit_of(pairs),
        pairs=throughputs,
        judgement=judgement,
        matters=plan.matters,
        seconds=seconds_of(pairs),
        differences=plan.differences,
        reason=reason if judgement.verdict is ABVerdict.UNDECIDED else "",
        folder=str(folder.path),
    )


def stop_reason(plan: WatchPlan, pairs: Sequence[TrialPair]) -> str | None:
    """Return why no further pair is run though nothing is certain; None to go on."""
    failed = [pair for pair in pairs if pair.throughputs is None]
    if len(failed) >= FAILURES_TO_GIVE_UP and 2 * len(failed) > len(pairs):
        last = failed[-1]
        side, record = (plan.after, last.after) if last.before.figure else (plan.before, last.before)
        failure = f"{record.outcome}: {record.detail}".rstrip(".")
        return _(
            "{failed} of {pairs} pairs failed, the last in {run}: {failure}",
            failed=len(failed),
            pairs=len(pairs),
            run=side.run,
            failure=one_line(failure),
        )
    if len(pairs) >= plan.most_pairs:
        return _n(len(pairs), "1 pair was not enough", "{count} pairs were not enough")
    if plan.most_seconds is not None and seconds_of(pairs) >= plan.most_seconds:
        return _("{seconds} s of trials were not enough", seconds=f"{plan.most_seconds:g}")
    return None


def progress_line(pairs: Sequence[TrialPair], judgement: ABResult) -> str:
    """`pair 7: 994.4 → 970.4  ×0.9733 [0.9660, 0.9917] undecided`."""
    last = pairs[-1].throughputs
    rates = f"{last[0]:,.4g} → {last[1]:,.4g}" if last else "failed"
    bounds = f"[{judgement.low:.4f}, {judgement.high:.4f}]" if judgement.low > 0 else "[no interval yet]"
    return f"pair {len(pairs)}: {rates}  ×{judgement.ratio:.4f} {bounds} {judgement.verdict.value}"


def _pair_side(side: WatchSide, display: RunDisplay, interrupts: Interrupts) -> PairSide:
    (case,) = side.prepared.plan.cases
    around = functools.partial(variables_of, side.spec)
    with around():
        context = context_of(side.run, side.prepared, LocalLauncher(), display, interrupts.stop_now)
    return PairSide(case, replace(context, interruptible=interrupts.raised), around)


def _program_commits(before: SideSpec, after: SideSpec, run: RunFolder) -> bool:
    """Whether the runs measured a user's program at two commits."""
    if not before.commit or not after.commit or before.commit == after.commit:
        return False
    prepared = prepare_side(replace(before, framework_version=None), run)
    with contextlib.closing(prepared):
        return is_program(prepared)


def _is_remade(name: str, with_commits: bool) -> bool:
    if name in COMMIT:
        return with_commits and name == "commit"
    return name in REMADE or name.startswith(REMADE_BEGINNINGS)
