"""What a comparison says: the verdict, the ratios drawn, every figure, and what else differs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from trainmark.measure.cost import Cost
from trainmark.measure.history.facts import FactChange, parts_only_in
from trainmark.pages import number
from trainmark.pages.comparison import (
    MARKS,
    NO_COST,
    ComparisonRow,
    Comparisons,
    ComparisonTable,
    PeakShares,
)
from trainmark.pages.facts import fact_title
from trainmark.pages.history_cells import fact_text
from trainmark.view import blocks
from trainmark.view.blocks import (
    Answer,
    Block,
    Items,
    Page,
    Section,
    Sentence,
    Span,
    Table,
    Text,
    only_late,
    without,
)
from trainmark.view.chart.axis import linear, rows
from trainmark.view.chart.model import Chart, Dots, Figure, Line, Mark, Panel, Plot, Whiskers, shape, tone
from trainmark.view.message import Message, _, joined

ROW, LANE = 30, 12
AIR = 0.1
# Differences that stand in a row, and the longest; JSON has more.
MOST_DIFFERENCES, LONGEST_DIFFERENCE = 4, 80
LOOKS = {"+": "mark conformant", "-": "mark not_conformant"}
MEANING = _(
    "Marks: {marks}.",
    marks=joined(
        [_("{mark} {meaning}", mark=mark, meaning=meaning) for mark, meaning in MARKS.items()], ", "
    ),
)
PEAKS = _("Shares of the peak: MFU, HFU, and the MFU that other codes would give.")
NO_DIFFERENCE, THROUGHPUT = _("none"), _("throughput ÷ baseline")


def comparison_page(comparisons: Comparisons, most_drawn: int | None = None) -> Page:
    """Return what a comparison says; of more cases than `most_drawn` those that changed most are drawn."""
    return Page(
        _("Comparison with {run}", run=comparisons.baseline),
        (
            without("html", *_listed(comparisons)),
            only_late("html", lambda: _drawn(comparisons, most_drawn)),
        ),
    )


def _listed(comparisons: Comparisons) -> Iterator[Block]:
    table = rows_table(comparisons)
    yield table if table.rows else Sentence(_("No case is on both sides."))
    if table.rows:
        yield Sentence(MEANING)
    if comparisons.doubted:
        yield Items(comparisons.doubted)
    if comparisons.priced:
        yield from _costs_of_runs(comparisons)
        price = _("cost and kWh: a million samples, at {price}", price=comparisons.priced)
        yield Sentence(price)
    yield from _peaks(comparisons)
    if alone := _alone(comparisons):
        yield Items(alone)
    if published := _published(comparisons):
        yield Items(published)
    yield from (frameworks.shown for frameworks in comparisons.frameworks)


def _drawn(comparisons: Comparisons, most: int | None) -> Iterator[Block]:
    nothing = _("no case in common")
    verdicts = [
        (Span(f"{table.after}:", "strong"), _("{counts}.", counts=table.counts or nothing))
        for table in comparisons.tables
    ]
    yield Answer(verdicts, look="lede")
    if drawn := plot(comparisons if most is None else _most_changed(comparisons, most)):
        note = _(
            "Throughput of each case divided by that of the baseline, with its 95 % interval; right of the"
            " dashed line is faster. A case without an interval has too few trials to say."
        )
        several = len(comparisons.tables) > 1
        legend = _("Runs") if several else ""
        chart = blocks.Chart(drawn, note, _("Case"), legend, at_first=len(comparisons.tables))
        yield Section(_("Ratio to the baseline"), [chart])
        below: list[Block] = [Sentence(MEANING, look="note")]
        if comparisons.priced and not several:
            priced = _("cost and kWh: a million samples, at {price}", price=comparisons.priced)
            below.append(Sentence(priced, look="note"))
        if comparisons.doubted:
            below.append(Items(comparisons.doubted))
        yield Section(_("Figures"), [rows_table(comparisons), *below], look="as-written")
        if costs := list(_costs_of_runs(comparisons)):
            at = Sentence(_("At {price}.", price=comparisons.priced), look="note")
            yield Section(_("Cost of a million samples"), [*costs, at], look="as-written")
        if peaks := list(_peaks(comparisons)):
            yield Section(_("Shares of the peak"), peaks, look="as-written")
    if alone := _alone(comparisons):
        yield Section(_("On one side only"), [Items(alone)])
    if comparisons.frameworks:
        tables = [frameworks.shown for frameworks in comparisons.frameworks]
        yield Section(_("Frameworks"), tables)
    conditions: list[Block] = [Items(list(_conditions(comparisons)))]
    if published := _published(comparisons):
        sentences = [Sentence(text, look="note") for text in published]
        conditions.append(Section(_("Among published results"), sentences, folded=True))
    yield Section(_("What holds for these figures"), conditions)


def _most_changed(comparisons: Comparisons, most: int) -> Comparisons:
    tables = []
    for table in comparisons.tables:
        rows = sorted(table.rows, key=lambda row: abs(row.ratio - 1), reverse=True)[:most]
        tables.append(replace(table, rows=tuple(rows)))
    return replace(comparisons, tables=tuple(tables))


def _conditions(comparisons: Comparisons) -> Iterator[Message]:
    yield _(
        "Cases are paired where workload, framework, precision, batch, data and topology are the same."
        " Command, commit, versions, variables and device may differ: what was recorded of that stands in the"
        " row, the likelier cause first."
    )
    yield _(
        "A ratio is that of two medians over trials. A case has changed where the 95 % interval of the ratio"
        " leaves 1 out; of a hundred equal cases up to five will by chance."
    )
    yield _(
        "The intervals cover what varies from trial to trial inside a run. Runs on different days or machines"
        " differ by more: for a close call run both again, one after the other."
    )
    if comparisons.priced:
        yield _(
            "Cost is the price times the devices times the hours of steady training: start-up, evaluation and"
            " idle time are left out. Energy is that of the devices, and of the processors where those report"
            " it."
        )


def _alone(comparisons: Comparisons) -> list[Message]:
    return [_("only in {side}: {case}", side=side, case=case) for side, case in comparisons.alone]


def _published(comparisons: Comparisons) -> list[str]:
    all_rows = (row for table in comparisons.tables for row in table.rows)
    return [f"{row.case}: {row.published}" for row in all_rows if row.published]


def rows_table(comparisons: Comparisons) -> Table:
    """Two runs in columns of their own figures, more of them in one column a run."""
    if len(comparisons.tables) == 1:
        return _pair(comparisons.tables[0], bool(comparisons.priced))
    header = (_("case"), comparisons.baseline, *(table.after for table in comparisons.tables), _("differs"))
    shown: list[list[Text]] = []
    for known, cells in comparisons.grid():
        named = zip(comparisons.runs[1:], cells, strict=True)
        differs = [f"{run}: {text}" for run, row in named if row and (text := _differences(row))]
        own = [_against(row) for row in cells]
        shown.append([known.case, number.throughput(known.before), *own, "; ".join(differs)])
    return Table(header, shown, right=frozenset(range(1, len(header) - 1)))


def _costs_of_runs(comparisons: Comparisons) -> Iterator[Table]:
    """Yield the cost of a million samples in each of several runs; of two it stands beside their figures."""
    if not comparisons.priced or len(comparisons.tables) == 1:
        return
    shown = []
    for known, cells in comparisons.grid():
        sides = [known.costs and known.costs[0], *(row and row.costs and row.costs[1] for row in cells)]
        shown.append([known.case, *(_cost(side) if side else number.MISSING for side in sides)])
    runs = comparisons.runs
    yield Table((_("case"), *runs), shown, right=frozenset(range(1, len(runs) + 1)))


def _peaks(comparisons: Comparisons) -> Iterator[Table]:
    """Yield MFU, HFU and other codes' MFU of each run, where a case has conventions."""
    known_rows = []
    for known, cells in comparisons.grid():
        sides = [known.peaks[0], *(row.peaks[1] if row else PeakShares() for row in cells)]
        if any(side.conventions for side in sides):
            known_rows.append((known.case, sides))
    names = dict.fromkeys(
        name for _case, sides in known_rows for side in sides for name, _ in side.conventions
    )
    if not names:
        return
    table = [
        [
            case,
            _arrows(side.mfu for side in sides),
            _arrows(side.hfu for side in sides),
            *(_arrows(dict(side.conventions).get(name) for side in sides) for name in names),
        ]
        for case, sides in known_rows
    ]
    header = (_("case"), "MFU", "HFU", *names)
    yield Table(header, table, frozenset(range(1, len(header))), notes=[PEAKS])


def _arrows(shares: Iterable[float | None]) -> str:
    return " → ".join(map(number.percent, shares))


def _differences(row: ComparisonRow) -> Message:
    """`command −--lr 0.1 +--width 1024; driver 550.54 → 560.28; and 3 more`."""
    texts = [difference_text(fact) for fact in row.differences[:MOST_DIFFERENCES]]
    more = len(row.differences) - len(texts)
    return joined([*texts, *([_("and {count} more", count=more)] if more else [])], "; ")


def difference_text(fact: FactChange) -> str:
    """Return what differs in a few words; of commands the words that one of them has."""
    if fact.name == "command" and fact.before and fact.after:
        gone, come = parts_only_in(fact.before, fact.after), parts_only_in(fact.after, fact.before)
        parts = [*(f"−{part}" for part in gone), *(f"+{part}" for part in come)]
        text = " ".join(parts) or _("in another order")
    else:
        text = " → ".join(fact_text(fact.name, value, NO_DIFFERENCE) for value in (fact.before, fact.after))
    text = _("{fact} {difference}", fact=fact_title(fact.name), difference=text)
    return text if len(text) <= LONGEST_DIFFERENCE else f"{text[: LONGEST_DIFFERENCE - 1]}…"


def interval(row: ComparisonRow) -> str:
    if row.low is None or row.high is None:
        return number.MISSING
    return f"[{row.low:.3f}, {row.high:.3f}]"


def _pair(table: ComparisonTable, priced: bool) -> Table:
    header = ["", _("case"), _("before"), _("after"), _("ratio"), _("interval"), _("differs")]
    header += [_("cost before"), _("cost after"), _("kWh before"), _("kWh after")] if priced else []
    shown: list[list[Text]] = [
        [
            Span(row.mark, LOOKS.get(row.mark, "")),
            row.case,
            number.throughput(row.before),
            number.throughput(row.after),
            f"×{row.ratio:.3f}",
            interval(row),
            _differences(row),
            *(_costs(row) if priced else ()),
        ]
        for row in table.rows
    ]
    return Table(header, shown, right=frozenset({2, 3, 4, 7, 8, 9, 10}))


def _costs(row: ComparisonRow) -> list[str]:
    before, after = row.costs or (NO_COST, NO_COST)
    money = [number.significant(cost.per_million, 3) for cost in (before, after)]
    return money + [number.significant(cost.kwh_per_million, 3) for cost in (before, after)]


def _against(row: ComparisonRow | None) -> str:
    return f"{number.throughput(row.after)} ×{row.ratio:.3f} {row.mark}" if row else number.MISSING


def _cost(cost: Cost) -> str:
    """`1.92, 0.200 kWh`; the energy where it is known."""
    energy = f", {number.significant(cost.kwh_per_million, 3)} kWh" if cost.kwh_per_million else ""
    return number.significant(cost.per_million, 3) + energy


def plot(comparisons: Comparisons) -> Plot | None:
    """The ratio of each case to the baseline with its interval, a lane a run."""
    grid = comparisons.grid()
    if not grid:
        return None
    lanes = len(comparisons.tables)
    marks: list[Mark] = [Line("muted", x=[1, 1], y=[-0.5, len(grid) - 0.5], dash=True)]
    reach = [1.0]
    for column, table in enumerate(comparisons.tables):
        members = [(place, cells[column]) for place, (_known, cells) in enumerate(grid)]
        known = [(place + 0.6 * ((column + 0.5) / lanes - 0.5), row) for place, row in members if row]
        sure = [(at, row) for at, row in known if row.low is not None and row.high is not None]
        low, high = [row.low for _at, row in sure], [row.high for _at, row in sure]
        series, colour = str(column), tone(column)
        marks.append(Whiskers(colour, series, at=[at for at, _row in sure], low=low, high=high, flat=True))
        marks.append(
            Dots(
                colour,
                series,
                x=[row.ratio for _at, row in known],
                y=[at for at, _ in known],
                texts=[_tip(row) for _at, row in known],
                name=table.after,
                shape=shape(column),
                radius=4,
            )
        )
        reach += [row.ratio for _at, row in known] + [bound for bound in (*low, *high) if bound is not None]
    air = AIR * (max(reach) - min(reach)) or AIR
    bounds = (max(0.0, min(reach) - air), max(reach) + air)
    across = linear([], THROUGHPUT, bounds=bounds, most=9)
    names = rows([known.case for known, _cells in grid])
    panel = Panel(names, marks, len(grid) * max(ROW, LANE * lanes + 10))
    return Plot("ratios", [Figure("", {"": Chart(across, [panel])})], list(comparisons.runs[1:]))


def _tip(row: ComparisonRow) -> str:
    figure = f"{number.throughput(row.after)} {row.unit}, ×{row.ratio:.3f} {interval(row)}"
    return _("{case}: {figure}, {mark}", case=row.case, figure=figure, mark=MARKS[row.mark])
