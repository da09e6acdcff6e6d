"""Results over time: the table of cases, and each with its chart, its changes and its results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from trainmark.measure.history.changes import LevelDrift
from trainmark.measure.history.facts import FactChange, fact_differences
from trainmark.measure.history.series import RunPoint
from trainmark.pages import number
from trainmark.pages.doubts import doubt_names
from trainmark.pages.facts import fact_title
from trainmark.pages.history import Histories, History, MarkedChange
from trainmark.pages.history_cells import (
    NOT_RECORDED,
    arrow,
    change_bounds,
    date,
    date_time,
    fact_texts,
    fact_words,
    has_too_few,
    no_change_verdict,
    percent_change,
    probability,
    sparkline,
)
from trainmark.pages.history_chart import ORDERS, plot, spark
from trainmark.view.blocks import (
    Answer,
    Block,
    Chart,
    Drawing,
    Items,
    Page,
    Section,
    Sentence,
    Span,
    Table,
    Text,
    only_late,
)
from trainmark.view.message import Message, _, joined

STYLE = "history.css"
# Facts shown of a change at once, and of a result beside the one before.
MOST_FACTS, MOST_LISTED_FACTS, MOST_DIFFERENCES = 5, 6, 3

ReportLink = Callable[[RunPoint], str]


def no_report(point: RunPoint) -> str:
    return ""


def history_page(histories: Histories, detailed: bool = False, report_link: ReportLink = no_report) -> Page:
    """`detailed` is for text: each case point by point; `report_link` gives the address of a report."""
    return Page(
        _("Results over time"),
        (
            only_late("terminal", partial(_listed, histories, detailed)),
            only_late("markdown", partial(_written, histories, detailed)),
            only_late("html", partial(_drawn, histories, report_link)),
        ),
    )


def summary(histories: Histories) -> list[Message]:
    """Return how much is shown, the number of changes, and what was left out."""
    counts = {"results": histories.results, "cases": len(histories.cases), "runs": histories.runs}
    lines = [_("Results: {results}. Cases: {cases}. Runs: {runs}.", **counts), changes_line(histories)]
    if left_out := histories.left_out:
        fact = ORDERS[histories.by]
        lines.append(_("Left out: {count} results that have no {fact} recorded.", count=left_out, fact=fact))
    return lines


def changes_line(histories: Histories) -> Message:
    slower = sum(marked.change.regression for _case, marked in histories.changes)
    faster = len(histories.changes) - slower
    parts = [_("No change of level.")]
    if slower + faster:
        parts = [_("Changes: {slower} slower, {faster} faster.", slower=slower, faster=faster)]
    if unreliable := sum(case.is_unreliable(marked) for case, marked in histories.changes):
        parts.append(_("Not to be relied on: {count} of them.", count=unreliable))
    if few := sum(map(has_too_few, histories.cases)):
        untold = _("Cases with too few results to tell: {count}.", count=few)
        parts = [untold] if few == len(histories.cases) else [*parts, untold]
    if histories.drifts:
        falling = sum(drift.regression for _case, drift in histories.drifts)
        rising = len(histories.drifts) - falling
        parts.append(_("Drifts: {slower} slower, {faster} faster.", slower=falling, faster=rising))
    return joined(parts, " ")


def change_sentence(case: History, marked: MarkedChange) -> Message:
    """`−4.2 % [−4.8, −3.6] from 2026-11-02 on (nightly-41). Probability …`."""
    change = marked.change
    sentence = _(
        "{ratio} {bounds} from {date} on ({run}).",
        ratio=percent_change(change.ratio),
        bounds=change_bounds(change),
        date=date(marked.point.time),
        run=marked.point.run,
    )
    return joined([sentence, chance_words(case, marked)], " ")


def chance_words(case: History, marked: MarkedChange) -> Message:
    chance = _(
        "Probability without a change: {probability}. Results at the new level: {count}.",
        probability=probability(marked.change.probability),
        count=marked.change.confirmed_by,
    )
    if not case.is_unreliable(marked):
        return chance
    doubt = _("Not certain: half of the results on a side, or more, are not to be relied on.")
    return joined([chance, doubt], " ")


def drift_sentence(case: History, drift: LevelDrift) -> Message:
    """`Drift of −1.9 % [−2.3, −1.5] over 100 results, from 2026-01-01 (nightly-0) to …`."""
    first, last = case.points[drift.first], case.points[drift.last]
    return _(
        "Drift of {ratio} {bounds} over {count} results, from {first} ({first_run}) to {last} ({last_run})."
        " Probability without a drift: {probability}.",
        ratio=percent_change(drift.ratio),
        bounds=change_bounds(drift),
        count=drift.results,
        first=date(first.time),
        first_run=first.run,
        last=date(last.time),
        last_run=last.run,
        probability=probability(drift.probability),
    )


def _listed(histories: Histories, detailed: bool) -> Iterator[Block]:
    """Yield the table of cases, or with `detailed` each case point by point."""
    if not detailed:
        yield overview_table(histories)
    for case in histories.cases if detailed else ():
        yield Section(f"{case.name} ({case.rate_unit})", [points_table(case), *_changes(case, True)])
    yield Items(summary(histories))


def _written(histories: Histories, detailed: bool) -> Iterator[Block]:
    yield Sentence(joined(summary(histories), " "))
    yield overview_table(histories)
    for case in histories.cases:
        if case.changes or case.drifts or detailed:
            points = [points_table(case)] if detailed else []
            yield Section(case.name, [*_changes(case, detailed), *points])


def _changes(case: History, detailed: bool) -> Iterator[Block]:
    """Yield the drifts, then each change with the facts that fit it."""
    if detailed and not case.changes and not case.drifts:
        yield Section("", [Sentence(no_change_verdict(case).sentence)])
    for drift in reversed(case.drifts):
        yield Sentence(drift_sentence(case, drift), look="apart")
    for marked in reversed(case.changes):
        yield Sentence(change_sentence(case, marked), look="caption")
        facts: Block = Sentence(_("No recorded fact changed with it."))
        yield facts_table(marked.facts[:MOST_LISTED_FACTS]) if marked.facts else facts


def overview_table(histories: Histories) -> Table:
    """A row for each case with its latest figure, all results as blocks, and its last change."""
    header = (
        *(_("case"), _("results"), _("latest"), _("interval"), _("history"), _("last change")),
        *(_("with it changed"), _("doubts")),
    )
    rows = [
        (
            case.name,
            len(case.points),
            latest_figure(case),
            number.interval(case.latest.interval),
            sparkline(case),
            *_last_change(case),
            doubt_names(case.latest.doubts),
        )
        for case in histories.cases
    ]
    return Table(header, rows, frozenset({1, 2}))


def _last_change(case: History) -> tuple[str, str]:
    """Return the drift that goes on, or else the last change and the fact that fits it best."""
    if drift := case.latest_drift:
        return drift_words(drift), ""
    if not case.changes:
        return no_change_verdict(case).last, ""
    marked = case.changes[-1]
    figure = f"{arrow(marked.change)} {percent_change(marked.change.ratio)} {change_bounds(marked.change)}"
    words = f"{figure} {date(marked.point.time)}"
    if case.is_unreliable(marked):
        words = _("{change} (not to be relied on)", change=words)
    return words, best_fact(marked)


def latest_figure(case: History) -> str:
    return f"{number.throughput(case.latest.median)} {case.rate_unit}"


def drift_words(drift: LevelDrift) -> Message:
    """`↘ −1.9 % [−2.3, −1.5] over 100 results`."""
    change = f"{arrow(drift)} {percent_change(drift.ratio)} {change_bounds(drift)}"
    return _("{change} over {count} results", change=change, count=drift.results)


def best_fact(marked: MarkedChange) -> str:
    return fact_words(marked.best) if marked.best else ""


def points_table(case: History) -> Table:
    """A row a result, the oldest first, with what differs from the one before."""
    header = (
        *(_("time (UTC)"), _("run"), _("throughput"), _("interval"), _("trials"), _("change")),
        *(_("differs from the one before"), _("doubts")),
    )
    rows = []
    for index, point in enumerate(case.points):
        marked = case.change_at(index)
        rows.append(
            (
                date_time(point.time),
                point.run,
                number.throughput(point.median),
                number.interval(point.interval),
                len(point.values),
                f"{arrow(marked.change)} {percent_change(marked.change.ratio)}" if marked else "",
                _differences(case, index),
                doubt_names(point.doubts),
            )
        )
    return Table(header, rows, frozenset({2, 4}))


def _differences(case: History, index: int) -> Message:
    facts = fact_differences(case.points[index - 1], case.points[index]) if index else []
    shown = [fact_words(fact) for fact in facts[:MOST_DIFFERENCES]]
    if len(facts) > MOST_DIFFERENCES:
        shown.append(_("and {count} more", count=len(facts) - MOST_DIFFERENCES))
    return joined(shown, "; ")


def facts_table(facts: Sequence[FactChange]) -> Table:
    """A row a fact that changed with a change of level, the best fit first."""
    rows = [(fact_title(fact.name), *fact_texts(fact, NOT_RECORDED), f"{fact.fit:.2f}") for fact in facts]
    return Table((_("fact"), _("before"), _("after"), _("fit")), rows, frozenset({3}), sortable=False)


def _drawn(histories: Histories, report_link: ReportLink) -> Iterator[Block]:
    yield Answer(summary(histories))
    if changes := histories.changes:
        items = [_change_item(case, marked) for case, marked in changes]
        looks = [_look(case, marked) for case, marked in changes]
        yield Section(_("Changes"), [Items(items, "changes", looks)])
    note = _("Latest result of each case: the median over its trials, with the interval.")
    header = (_("case"), _("latest"), _("history"), _("last change"), _("results"))
    rows = [_overview_row(case) for case in histories.cases]
    right, looks_of = frozenset({1, 4}), {0: "name stuck"}
    yield Section(
        _("Cases"),
        [Table(header, rows, right, notes=[note], look="cases-over-time", looks=looks_of)],
    )
    for case in histories.cases:
        yield _case(case, histories.by, report_link)
    yield Section(_("What holds for these figures"), [Items(CONDITIONS)])


CONDITIONS = (
    _(
        "A case has one line for each machine. The framework’s version may change along a line; everything"
        " else that a result is keyed by is the same."
    ),
    _(
        "A change is a lasting change of level, judged by the trials’ own spread and by the spread from run"
        " to run. It does not say why: a fact that fits well changed at the same place."
    ),
    _(
        "A drift is a level that moves slowly and steadily: a straight line explains the results between two"
        " changes better than any step."
    ),
    _(
        "The fit of a fact is the share of results before the change with its usual value there, times that"
        " share after it; 1 is constant before, constant after, and different."
    ),
    _("Intervals cover what varies from trial to trial inside a run; days and reboots vary by more."),
)


def _anchor(case: History, index: int) -> str:
    """The id of a result's card."""
    return f"r-{case.id[:10]}-{index}"


def _look(case: History, marked: MarkedChange) -> str:
    if case.is_unreliable(marked):
        return "unsure"
    return "bad" if marked.change.regression else "good"


def _change(case: History, marked: MarkedChange, linked: bool = True) -> tuple[Span, Span]:
    link = f"#{_anchor(case, marked.index)}" if linked else ""
    ratio = Span(percent_change(marked.change.ratio), f"change {_look(case, marked)}", link)
    return ratio, Span(change_bounds(marked.change), "sub")


def _change_item(case: History, marked: MarkedChange) -> Text:
    fact = Span(best_fact(marked), "why") if marked.best else None
    what = (*_change(case, marked), Span(case.name, "of"), fact)
    return Span(date(marked.point.time), "when"), Span(what, "what")


def _overview_row(case: History) -> tuple[Text, ...]:
    latest, change = case.latest, None
    figure = (
        Span(number.throughput(latest.median), "strong"),
        Span(case.rate_unit, "sub"),
        Span(number.interval(latest.interval), "under"),
        Span(doubt_names(latest.doubts), "under slow") if latest.doubts else None,
    )
    last: Text = Span(words, "sub") if (words := no_change_verdict(case).last) else None
    if drift := case.latest_drift:
        last = Span(drift_words(drift), f"change {'bad' if drift.regression else 'good'}")
    elif case.changes:
        change = case.changes[-1]
        when = [date(change.point.time), *([best_fact(change)] if change.best else [])]
        last = Span(_change(case, change, linked=False), "nowrap"), Span(joined(when, " · "), "under")
    name = Span(case.name, link=f"#c-{case.id}")
    return name, figure, Drawing(lambda lang: spark(case)), last, len(case.points)


def _case(case: History, by: str, report_link: ReportLink) -> Section:
    return Section(case.name, list(_case_blocks(case, by, report_link)), look="history", id=f"c-{case.id}")


def _case_blocks(case: History, by: str, report_link: ReportLink) -> Iterator[Block]:
    latest, machine = case.latest, case.series.machine
    about = [number.interval(latest.interval), date(latest.time), *([machine] if machine else [])]
    figure = Span(number.throughput(latest.median), "strong")
    yield Sentence((figure, case.rate_unit, _parts(about)), look="lede")
    note = _(
        "Median of each result with its interval; dark lines are levels, slanted where they drift; a dashed"
        " line marks a change. A ring has doubts."
    )
    choose = _("Choose a point for its run, report and environment difference.")
    drawn = plot(case, by, lambda own, index: f"#{_anchor(own, index)}")
    yield Chart(drawn, joined([note, choose], " "), _("case"))
    cards = [_card(case, index, report_link) for index in range(len(case.points))]
    yield Section("", cards, look="result-cards")
    if not case.changes and not case.drifts:
        yield Sentence(no_change_verdict(case).sentence, look="note")
    for drift in reversed(case.drifts):
        look = "bad" if drift.regression else "good"
        yield Section("", [Sentence(drift_sentence(case, drift))], look=f"marked {look}")
    for marked in reversed(case.changes):
        title = (*_change(case, marked), date(marked.point.time), Span(marked.point.run, "sub"))
        look = f"marked {_look(case, marked)}"
        yield Section(title, [Sentence(chance_words(case, marked), "note"), *_facts(marked)], look=look)
    results = Span(len(case.points), "sub")
    yield Section((_("All results"), results), [points_table(case)], folded=True)


def _facts(marked: MarkedChange) -> Iterator[Block]:
    if not marked.facts:
        yield Sentence(_("No recorded fact changed with it."), look="note")
        return
    yield facts_table(marked.facts[:MOST_FACTS])
    if more := marked.facts[MOST_FACTS:]:
        yield Section(_("and {count} more", count=len(more)), [facts_table(more)], folded=True)


def _card(case: History, index: int, report_link: ReportLink) -> Section:
    """What a click on the dot of a result shows."""
    point = case.points[index]
    title = point.run, Span(f"{date_time(point.time)} UTC", "sub part")
    blocks = list(_card_blocks(case, index, report_link(point)))
    return Section(title, blocks, look="result-card", id=_anchor(case, index))


def _card_blocks(case: History, index: int, report: str) -> Iterator[Block]:
    point, marked = case.points[index], case.change_at(index)
    last = index + 1 == len(case.points)
    turns = [("←", index - 1, index == 0), ("→", index + 1, last)]
    links = [
        Span(sign, "end") if end else Span(sign, link=f"#{_anchor(case, place)}")
        for sign, place, end in turns
    ]
    yield Sentence(links, look="turn")
    trials = _("trials: {count}", count=len(point.values))
    figure = Span(f"{number.throughput(point.median)} {case.rate_unit}", "strong")
    change = _change(case, marked, linked=False) if marked else None
    yield Sentence((figure, _parts([number.interval(point.interval), trials]), change), look="figures")
    if point.doubts:
        yield Sentence(_("doubts: {doubts}", doubts=doubt_names(point.doubts)), look="slow note")
    yield Sentence(Span(_("Report"), link=report) if report else Span(_("no report written"), "missing"))
    if index == 0:
        yield Sentence(_("The first result."), look="note")
        return
    rows = [
        (fact_title(fact.name), *fact_texts(fact, NOT_RECORDED))
        for fact in fact_differences(case.points[index - 1], point)
    ]
    if not rows:
        yield Sentence(_("Nothing recorded differs from the result before."), look="note")
        return
    table = Table((_("fact"), _("before"), _("after")), rows, sortable=False)
    yield Section(_("Environment: difference from the result before"), [table])


def _parts(texts: Sequence[str]) -> Span:
    """Short texts of which none is broken over two lines."""
    pieces: list[Text] = []
    for text in texts:
        pieces += [*(["·"] if pieces else []), Span(text, "part")]
    return Span(pieces, "sub")
