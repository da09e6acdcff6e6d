"""A bisection in words: the culprit, the size of the change, every step and what it cost."""

from __future__ import annotations

from trainmark.report.format.markup import plain
from trainmark.report.format.number import MISSING, clock, counted
from trainmark.report.format.table import Table
from trainmark.sequential.bisection import Bisection, Finding, Measured
from trainmark.visible import one_line

HEADER = ("step", "tried", "is", "ratio", "95 % interval", "pairs", "trials", "time", "why")
NUMBERS = frozenset({0, 3, 4, 5, 6, 7})
NOUNS = {"versions": "version", "commits": "commit", "settings": "difference"}
LONGEST_NAME = 60


def headline(bisection: Bisection) -> str:
    """Return the outcome in one sentence."""
    reference = bisection.reference
    whole = f"{reference.second} is {ratio(reference)} of {reference.first}"
    if bisection.finding is Finding.NO_CHANGE:
        return f"There is nothing to bisect: {whole}, a difference below {bisection.matters:.1%}."
    if bisection.finding is Finding.UNDECIDED:
        return f"Good and bad were not told apart after {counted(len(reference.pairs), 'pair')}: {whole}."
    names = ", ".join(bisection.culprits)
    change = bisection.confirmation
    assert change is not None
    if bisection.finding is Finding.UNCONFIRMED:
        return (
            f"The search ended at {names}, but beside {change.first} it shows {ratio(change)}: "
            "not confirmed. There may be several changes, or one that comes and goes."
        )
    effect = f"throughput is {ratio(change)} of that {_before(bisection, change)}"
    if bisection.finding is Finding.NARROWED:
        return f"The change lies in one of {names}; what lies between them was skipped: {effect}."
    noun = NOUNS[bisection.kind]
    if bisection.kind == "settings" and len(bisection.culprits) > 1:
        return f"{names} make the change together: {effect}."
    return f"The culprit is the {noun} {names}: {effect}."


def _before(bisection: Bisection, change: Measured) -> str:
    return "of the good side" if bisection.kind == "settings" else f"of {change.first}"


def share_sentence(bisection: Bisection) -> str | None:
    """Say how much of the whole change the culprit makes, where it is clearly not all of it."""
    share = bisection.share
    if share is None or bisection.kind == "settings" or bisection.finding is not Finding.FOUND:
        return None
    whole = f"{bisection.reference.first} to {bisection.reference.second} is {ratio(bisection.reference)}"
    if share < 0.7:
        return (
            f"It makes {share:.0%} of the whole change ({whole}): look for another one on either side of it."
        )
    return f"The whole change: {whole}."


def cost_sentence(bisection: Bisection) -> str:
    sides = "no preparation"
    if bisection.preparation >= 1:
        sides = f"{clock(bisection.preparation)} of installs, checkouts and set-up"
    skipped = sum(step.side.value == "skipped" for step in bisection.steps)
    steps = counted(len(bisection.steps), "step") + (f", {skipped} of them skipped" if skipped else "")
    return f"Cost: {counted(bisection.trials, 'trial')} in {clock(bisection.seconds)}, {sides}; {steps}."


def method_sentence(bisection: Bisection) -> str:
    return (
        f"Each step runs in turns with {bisection.reference.first} until a sequential test is certain; the "
        f"wrong half is taken in at most {bisection.error:.0%} of bisections. Ratios are of throughput "
        f"({bisection.unit}/s), their intervals hold at every look."
    )


def steps_table(bisection: Bisection) -> Table:
    """Return a row for each comparison, in the order in which they were made."""
    rows = [_row("", bisection.reference.second, "reference", bisection.reference, "")]
    rows += [
        _row(str(number), step.name, step.side.value, step.measured, step.reason)
        for number, step in enumerate(bisection.steps, 1)
    ]
    if bisection.confirmation is not None and not _repeated(bisection, bisection.confirmation):
        change = bisection.confirmation
        rows.append(_row("", change.second, "culprit", change, f"beside {change.first}"))
    return Table(HEADER, rows, NUMBERS)


def _repeated(bisection: Bisection, change: Measured) -> bool:
    """Whether a row of the table already has this comparison."""
    return change.run in {
        bisection.reference.run,
        *(step.measured.run for step in bisection.steps if step.measured),
    }


def _row(number: str, name: str, side: str, measured: Measured | None, reason: str) -> list[str]:
    if measured is None:
        return [number, _short(name), side, "", "", "", "", "", reason]
    return [
        *(number, _short(name), side),
        *(f"×{measured.ratio:.3f}", bounds(measured), str(len(measured.pairs))),
        *(str(measured.trials), clock(measured.seconds), reason),
    ]


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def ratio(measured: Measured) -> str:
    return f"×{measured.ratio:.3f} {bounds(measured)}"


def bounds(measured: Measured) -> str:
    if measured.low is None and measured.high is None:
        return MISSING
    low, high = (MISSING if bound is None else f"{bound:.3f}" for bound in (measured.low, measured.high))
    return f"[{low}, {high}]"


def untried(bisection: Bisection) -> str | None:
    """Say how many items were passed over, which is what a bisection is for."""
    if bisection.kind == "settings":
        return None
    tried = len({step.items for step in bisection.steps}) + 2
    return f"{tried} of {counted(len(bisection.names), NOUNS[bisection.kind])} were tried."


def sentences(bisection: Bisection) -> list[str]:
    """Return the sentences below the headline."""
    parts = [share_sentence(bisection), *bisection.notes, untried(bisection), cost_sentence(bisection)]
    return [part for part in (*parts, method_sentence(bisection)) if part]


def lines(bisection: Bisection, width: int | None = None) -> list[str]:
    """Return the report for a terminal."""
    below = [one_line(sentence) for sentence in sentences(bisection)]
    return [one_line(headline(bisection)), "", *steps_table(bisection).lines(width), "", *below]


def markdown(bisection: Bisection) -> str:
    items = "\n".join(f"- {plain(one_line(sentence))}" for sentence in sentences(bisection))
    title = f"# Bisection of {plain(bisection.subject)}: {plain(bisection.case)}"
    table = steps_table(bisection).markdown()
    command = f"\n```text\n{one_line(bisection.command)}\n```\n" if bisection.command else ""
    return f"{title}\n\n{plain(one_line(headline(bisection)))}\n{command}\n{table}\n\n{items}\n"
