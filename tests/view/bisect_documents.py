"""Made bisections and confirmations: one of each kind of outcome."""

from __future__ import annotations

from dataclasses import replace

from trainmark.measure.ab import Confirmation, FactDifference, judge
from trainmark.measure.bisection import (
    Bisection,
    BisectionFinding,
    BisectionStep,
    ChangeSide,
    PairedMeasurement,
    setting_words,
)
from trainmark.view.message import _, _n

PAIRS = tuple((100.0 + number, 80.0 + number) for number in range(8))


def measured(first: str, second: str, ratio: float, run: str) -> PairedMeasurement:
    return PairedMeasurement(first, second, PAIRS, ratio, 0.9 * ratio, None, 2 * len(PAIRS), 75.0, run)


UNJUDGED = setting_words("layout=(as in the suite)")
REFERENCE = measured("1.0", "1.4", 0.8, "00-reference")
SKIPS = (
    _("undecided after {pairs} pairs", pairs=60),
    _("it does not install: {reason}", reason="No matching distribution"),
    _("it cannot be checked out: {reason}", reason="no such ref"),
    _("it has no folder {folder}", folder="tools/"),
    _("its set-up failed: {reason}", reason="make: Error 1"),
    _("the suite refuses it: {reason}", reason="unknown layout"),
    _("it is not planned on this machine"),
    _("{failed} of {trials} trials failed ({reason})", failed=2, trials=2, reason="crashed: exit code 1"),
)


def step(item: int, side: ChangeSide, reason: str = "") -> BisectionStep:
    own = None if side is ChangeSide.SKIPPED else measured("1.0", f"1.{item}", 0.81, f"0{item}")
    return BisectionStep((item,), f"1.{item}", side, 0.01, 3.0, own, reason)


def versions() -> Bisection:
    return Bisection(
        kind="versions",
        subject="toy",
        case="train-b8",
        unit="samples",
        names=("1.0", "1.1", "1.2", "1.3", "1.4"),
        matters=0.01,
        error=0.1,
        finding=BisectionFinding.FOUND,
        reference=REFERENCE,
        steps=(
            step(2, ChangeSide.BAD),
            step(1, ChangeSide.GOOD),
            *(step(3, ChangeSide.SKIPPED, reason) for reason in SKIPS),
        ),
        culprits=("1.2",),
        confirmation=measured("1.1", "1.2", 0.82, "99-confirmation"),
        notes=(_("Installed with it in another version: {packages}.", packages="numpy 1.26 → 2.0"),),
        preparation=40.0,
        command="trainmark bisect --good toy==1.0 --bad toy==1.4 -- python train.py",
    )


def settings() -> Bisection:
    ends = measured("good", "bad", 0.8, "00-reference")
    names = ("layout=NHWC", "OMP_NUM_THREADS=(not set)")
    tried = BisectionStep((0,), names[0], ChangeSide.GOOD, 0.01, 0.0, measured("good", "with-1", 0.99, "01"))
    return replace(
        versions(),
        kind="settings",
        subject="settings",
        names=names,
        reference=ends,
        steps=(tried,),
        culprits=names[1:],
        confirmation=measured("good", "with-2", 0.8, "02"),
        notes=(_("The culprits may be fewer: not judged were {subsets}.", subsets=UNJUDGED),),
        preparation=0.0,
    )


def bisections() -> dict[str, Bisection]:
    found, of_settings = versions(), settings()
    return {
        "found": found,
        "a part of the change": replace(found, confirmation=measured("1.1", "1.2", 0.93, "99")),
        "narrowed": replace(found, finding=BisectionFinding.NARROWED, culprits=("1.2", "1.3")),
        "no change": replace(
            found, finding=BisectionFinding.NO_CHANGE, steps=(), culprits=(), confirmation=None
        ),
        "undecided": replace(
            found, finding=BisectionFinding.UNDECIDED, steps=(), culprits=(), confirmation=None
        ),
        "unconfirmed": replace(found, finding=BisectionFinding.UNCONFIRMED),
        "commits": replace(found, kind="commits", subject="trainer"),
        "settings": of_settings,
        "settings together": replace(of_settings, culprits=of_settings.names),
    }


def confirmation(before: float, after: float, reason: str = "", pairs: int = 10) -> Confirmation:
    measured_pairs = tuple((before + 0.01 * number, after + 0.01 * number) for number in range(pairs))
    return Confirmation(
        case="train-b8",
        before="monday",
        after="tuesday",
        unit="samples",
        pairs=measured_pairs,
        judgement=judge(measured_pairs, matters=0.01, error=0.05),
        matters=0.01,
        seconds=12.5,
        differences=(
            FactDifference("commit", "a" * 40, "b" * 40),
            FactDifference("driver", None, "560.28", remade=False),
        ),
        reason=reason,
        folder="runs/watch-1",
    )


TOO_LONG = _("{seconds} s of trials were not enough", seconds=60)
FAILED = _(
    "{failed} of {pairs} pairs failed, the last in {run}: {failure}",
    failed=2, pairs=2, run="monday", failure="crashed: gone",
)  # fmt: skip


def too_few(pairs: int) -> str:
    return _n(pairs, "1 pair was not enough", "{count} pairs were not enough")


def confirmations() -> dict[str, Confirmation]:
    return {
        "slower": confirmation(100, 90),
        "faster": confirmation(100, 110),
        "same": confirmation(100, 100, pairs=40),
        "undecided": confirmation(
            100, 90, _n(3, "1 pair was not enough", "{count} pairs were not enough"), pairs=3
        ),
        "one pair": confirmation(
            100, 90, _n(1, "1 pair was not enough", "{count} pairs were not enough"), pairs=1
        ),
        "no time left": confirmation(
            100, 90, _("{seconds} s of trials were not enough", seconds=60), pairs=1
        ),
        "failing": confirmation(100, 90, FAILED, pairs=0),
    }
