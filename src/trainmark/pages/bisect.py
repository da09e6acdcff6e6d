"""A bisection: the culprit, the size of the change, every step and what it cost."""

from __future__ import annotations

from collections.abc import Iterator

from trainmark.measure.bisection import Bisection, BisectionFinding, PairedMeasurement, setting_words
from trainmark.pages.number import MISSING, clock
from trainmark.view.blocks import (
    Answer,
    Block,
    Chart,
    Code,
    Items,
    Page,
    Section,
    Table,
    Text,
    only,
)
from trainmark.view.chart import model
from trainmark.view.chart.axis import linear, rows
from trainmark.view.chart.model import Dots, Figure, Line, Mark, Panel, Plot, Whiskers, tone
from trainmark.view.message import Message, _, _n, joined

NUMBERS = frozenset({0, 3, 4, 5, 6, 7})
SETTINGS = "settings"
LONGEST_NAME = 60
ROW = 26
AIR = 0.1
SIDES = {
    "good": _("good"),
    "bad": _("bad"),
    "skipped": _("skipped"),
    "reference": _("reference"),
    "culprit": _("culprit"),
}


def bisect_page(bisection: Bisection) -> Page:
    subject = _("settings") if bisection.kind == SETTINGS else bisection.subject
    command = [Code(bisection.command)] if bisection.command else []
    note = _(
        "Throughput of what was tried divided by that of the good side in the same pairs, with its"
        " {confidence} interval, from good (top) to bad.",
        confidence=_confidence(bisection),
    )
    steps, notes = _steps(bisection), Items(list(_sentences(bisection)))
    chart = Chart(_plot(bisection), note, _("tried"))
    shown: list[Block] = [
        Answer([_headline(bisection)]),
        only(
            "html",
            Section(_("Throughput beside the good side"), [chart]),
            Section(_("Steps"), [steps], look="as-written"),
            Section(_("Notes"), [notes, *command]),
        ),
        only("markdown", *command, steps, notes),
        only("terminal", steps, notes),
    ]
    return Page(_("Bisection of {subject}: {case}", subject=subject, case=bisection.case), shown)


def _name(bisection: Bisection, name: str) -> str:
    """Return the name of an item, or of a whole side."""
    if bisection.kind != SETTINGS:
        return name
    sides = {"good": _("the good side"), "bad": _("the bad side")}
    return sides.get(name) or setting_words(name)


def _confidence(bisection: Bisection) -> str:
    return f"{100 * (1 - bisection.error):.3g} %"


def _headline(bisection: Bisection) -> Message:
    """Return the outcome in one sentence."""
    whole, change = _whole(bisection), bisection.confirmation
    if bisection.finding is BisectionFinding.NO_CHANGE:
        return _(
            "There is nothing to bisect: {whole}, a difference below {matters}.",
            whole=whole,
            matters=_percent(bisection.matters),
        )
    if bisection.finding is BisectionFinding.UNDECIDED:
        pairs = _n(len(bisection.reference.pairs), "1 pair", "{count} pairs")
        return _("Good and bad were not told apart after {pairs}: {whole}.", pairs=pairs, whole=whole)
    assert change is not None
    names = joined([_name(bisection, name) for name in bisection.culprits], ", ")
    first = _name(bisection, change.first)
    if bisection.finding is BisectionFinding.UNCONFIRMED:
        return _(
            "The search ended at {names}, but beside {first} it shows {ratio}: not confirmed. There may be"
            " several changes, or one that comes and goes.",
            names=names,
            first=first,
            ratio=_ratio(change),
        )
    values = {
        "names": names,
        "effect": _("throughput is {ratio} of that of {first}", ratio=_ratio(change), first=first),
    }
    if bisection.finding is BisectionFinding.NARROWED:
        return _("The change lies in one of {names}; what lies between them was skipped: {effect}.", **values)
    if bisection.kind == "versions":
        return _("The culprit is the version {names}: {effect}.", **values)
    if bisection.kind == "commits":
        return _("The culprit is the commit {names}: {effect}.", **values)
    if len(bisection.culprits) > 1:
        return _("{names} make the change together: {effect}.", **values)
    return _("The culprit is the difference {names}: {effect}.", **values)


def _whole(bisection: Bisection) -> Message:
    reference = bisection.reference
    first, second = _name(bisection, reference.first), _name(bisection, reference.second)
    return _("{second} is {ratio} of {first}", second=second, ratio=_ratio(reference), first=first)


def _sentences(bisection: Bisection) -> Iterator[Text]:
    """Yield the sentences below the headline."""
    share = bisection.share
    if share is not None and bisection.kind != SETTINGS and bisection.finding is BisectionFinding.FOUND:
        if share < 0.7:
            yield _(
                "It makes {share} of the whole change ({whole}): look for another one on either side of it.",
                share=_percent(share),
                whole=_whole(bisection),
            )
        else:
            yield _("The whole change: {whole}.", whole=_whole(bisection))
    yield from bisection.notes
    tried = {
        "tried": len({step.items for step in bisection.steps}) + 2,
        "count": f"{len(bisection.names):,}",
    }
    if bisection.kind == "versions":
        yield _("{tried} of {count} versions were tried.", **tried)
    if bisection.kind == "commits":
        yield _("{tried} of {count} commits were tried.", **tried)
    yield _cost(bisection)
    yield _(
        "Each step runs in turns with {first} until a sequential test is certain; the wrong half is taken in"
        " at most {error} of bisections. Ratios are of throughput ({unit}/s), their intervals hold at every"
        " look.",
        first=_name(bisection, bisection.reference.first),
        error=_percent(bisection.error),
        unit=bisection.unit,
    )


def _cost(bisection: Bisection) -> Message:
    preparation = _("no preparation")
    if bisection.preparation >= 1:
        preparation = _("{time} of installs, checkouts and set-up", time=clock(bisection.preparation))
    steps = _n(len(bisection.steps), "1 step", "{count} steps")
    if skipped := sum(step.side.value == "skipped" for step in bisection.steps):
        steps = _("{steps}, {skipped} of them skipped", steps=steps, skipped=skipped)
    return _(
        "Cost: {trials} in {time}, {preparation}; {steps}.",
        trials=_n(bisection.trials, "1 trial", "{count} trials"),
        time=clock(bisection.seconds),
        preparation=preparation,
        steps=steps,
    )


def _steps(bisection: Bisection) -> Table:
    """A row for each comparison, in the order in which they were made."""
    change = bisection.confirmation
    rows = [_row(bisection, "", bisection.reference.second, "reference", bisection.reference, "")]
    rows += [
        _row(bisection, str(number), step.name, step.side.value, step.measured, step.reason)
        for number, step in enumerate(bisection.steps, 1)
    ]
    if change is not None and not _repeated(bisection, change):
        beside = _("beside {first}", first=_name(bisection, change.first))
        rows.append(_row(bisection, "", change.second, "culprit", change, beside))
    interval = _("{confidence} interval", confidence=_confidence(bisection))
    header = (
        *(_("step"), _("tried"), _("is"), _("ratio"), interval),
        *(_("pairs"), _("trials"), _("time"), _("why")),
    )
    return Table(header, rows, NUMBERS, sortable=False)


def _row(
    bisection: Bisection, number: str, name: str, side: str, measured: PairedMeasurement | None, reason: str
) -> list[Text]:
    about = [number, _short(_name(bisection, name)), SIDES[side]]
    if measured is None:
        return [*about, "", "", "", "", "", reason]
    figures = [f"×{measured.ratio:.3f}", _bounds(measured), str(len(measured.pairs))]
    return [*about, *figures, str(measured.trials), clock(measured.seconds), reason]


def _repeated(bisection: Bisection, change: PairedMeasurement) -> bool:
    """Whether a row of the table already has this comparison."""
    return change.run in {
        bisection.reference.run,
        *(step.measured.run for step in bisection.steps if step.measured),
    }


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _short(name: str, longest: int = LONGEST_NAME) -> str:
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def _ratio(measured: PairedMeasurement) -> str:
    return f"×{measured.ratio:.3f} {_bounds(measured)}"


def _bounds(measured: PairedMeasurement) -> str:
    if measured.low is None and measured.high is None:
        return MISSING
    low, high = (MISSING if bound is None else f"{bound:.3f}" for bound in (measured.low, measured.high))
    return f"[{low}, {high}]"


def _plot(bisection: Bisection) -> Plot:
    """Every item that was measured beside the good side, from good to bad, with its interval."""
    items: dict[tuple[int, ...], tuple[str, PairedMeasurement]] = {
        step.items: (_name(bisection, step.name), step.measured) for step in bisection.steps if step.measured
    }
    last = (len(bisection.names),)
    items[last] = (_name(bisection, bisection.reference.second), bisection.reference)
    shown = [items[place] for place in sorted(items)]
    marks: list[Mark] = [Line("muted", x=[1, 1], y=[-0.5, len(shown) - 0.5], dash=True)]
    sure = [(at, part) for at, (_place, part) in enumerate(shown) if part.low and part.high]
    marks.append(
        Whiskers(
            tone(0),
            "0",
            at=[float(at) for at, _part in sure],
            low=[part.low for _at, part in sure],
            high=[part.high for _at, part in sure],
            flat=True,
        )
    )
    texts = [_("{name}: {ratio}", name=name, ratio=_ratio(part)) for name, part in shown]
    ratios = [part.ratio for _item, part in shown]
    marks.append(
        Dots(
            tone(0), "0", x=ratios, y=[float(at) for at in range(len(shown))], texts=texts, name="", radius=4
        )
    )
    reach = [1.0, *ratios, *(bound for _at, part in sure for bound in (part.low, part.high) if bound)]
    air = AIR * (max(reach) - min(reach)) or AIR
    span = (max(0.0, min(reach) - air), max(reach) + air)
    across = linear([], _("throughput ÷ good"), bounds=span, most=9)
    panel = Panel(rows([_short(name, 40) for name, _part in shown]), marks, len(shown) * ROW)
    return Plot("ratios", [Figure("", {"": model.Chart(across, [panel])})], [bisection.reference.second])
