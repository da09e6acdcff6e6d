"""The results of a run: a line each, the form of published reports, all figures in a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from trainmark.measure.ab import ERROR, FEWEST_PAIRS, ABVerdict, BaselineContrast
from trainmark.measure.doubts import DoubtCode, Severity
from trainmark.measure.figure import Ratio, Result
from trainmark.pages import label, number
from trainmark.pages.doubts import doubt_names
from trainmark.pages.run.answer import LIST, NO_INTERVAL, DoubtNote, doubt_marks, source_sentences
from trainmark.pages.standing import standing_line
from trainmark.store.report import RunReport
from trainmark.view.blocks import (
    Bar,
    Block,
    Doubts,
    Items,
    Section,
    Sentence,
    Span,
    Table,
    Text,
    only,
    without,
)
from trainmark.view.message import Message, _, joined
from trainmark.workloads import registry

# After the case come the columns of the published tables, under the names they have there.
PUBLISHED = ("node_num", "gpu_num_per_node", "batch_size_per_device")
RESULTS, NO_RESULTS = (
    _("Results"),
    _("No figure: no trial ended well. The reasons are listed under “Failed and skipped”."),
)


def result_section(report: RunReport, notes: Sequence[DoubtNote]) -> Section:
    results = report.results
    if not results:
        return Section(RESULTS, [Sentence(NO_RESULTS)], frozenset({"markdown"}))
    listed = contrast_table(report) if report.contrasts else result_table(results)
    shared = Sentence(label.shared_facts([result.key for result in results]), "note shared")
    sources = [Sentence(sentence, "note") for sentence in source_sentences(results)]
    below = [shared, *sources, *_published(report)]
    return Section(
        "",
        [
            only("terminal", listed, *_doubts(notes)),
            only("markdown", Section(RESULTS, [_published_form(results, notes), *_doubts(notes), *below])),
            only("html", Section("", [_full_table(results, notes), *below], look="cases")),
        ],
    )


def _doubts(notes: Sequence[DoubtNote]) -> list[Block]:
    return [Doubts([note.block for note in notes])] if notes else []


def _published(report: RunReport) -> Iterator[Block]:
    """Yield where each result stands among the published ones; nothing for a user's own program."""
    lines = [
        Span((f"{case}:", line))
        for case, result in label.cases(report.results)
        if (line := standing_line(result.key, report.published.get(result.key)))
    ]
    if lines:
        yield Section(_("Published results"), [Items(lines)], folded=True)


def result_table(results: Sequence[Result]) -> Table:
    """`pytorch  amp/dynamic  b256  1n8g  6,154.7 img/s  [6,130, 6,173]  n=6  ×7.67 [7.61, 7.71]  96 %`."""
    names = label.distinguishing(result.key for result in results)
    ordered = [result for _case, result in label.cases(results)]
    return Table((), [_line(result, names) for result in ordered], frozenset({4, 8}))


def _line(result: Result, names: Sequence[str]) -> list[Text]:
    key = result.key
    unit = label.rate_unit(registry.short_unit(result.unit))
    codes = doubt_names([doubt.code.value for doubt in result.doubts])
    # A program is run as its user starts it: there is no trial of it on one device.
    scales = key.devices > 1 and (result.speedup or key.framework)
    return [
        label.framework(key),
        label.precision(key),
        label.batch(key),
        " ".join(filter(None, (key.topology, label.extras(key, names)))),
        f"{number.throughput(result.throughput)} {unit}",
        number.interval(result.interval) if result.interval else _("[no interval]"),
        f"n={result.n}",
        *(_ratios(result, 0, "× ") if scales else ("", "")),
        joined([" ! ", codes], "") if codes else "",
    ]


def _ratios(result: Result, decimals: int, missing: str = "") -> tuple[str, str]:
    """Speed-up and efficiency, n/a without a baseline of one device."""
    if result.speedup is None:
        return f"{missing}{number.MISSING}", number.MISSING
    share = number.percent(result.efficiency.value, decimals) if result.efficiency else number.MISSING
    return " ".join(map(str, ratio_cell(result.speedup, str))).strip(), share


def ratio_cell(ratio: Ratio, under: Callable[[str], Text] = lambda text: Span(text, "under")) -> list[Text]:
    """`×7.67`, its interval in smaller print below where it has one."""
    bounds = [under(number.ratio_interval(ratio.interval))] if ratio.interval else []
    return [f"×{number.ratio(ratio.value)}", *bounds]


def share_cell(ratio: Ratio) -> list[Text]:
    """`93.0 %`, its interval in smaller print below where it has one."""
    bounds = [Span(number.percent_interval(ratio.interval), "under")] if ratio.interval else []
    return [number.percent(ratio.value), *bounds]


def rate_cell(result: Result, with_unit: bool = False) -> list[Text]:
    unit = label.rate_unit(result.unit) if with_unit else None
    bounds = number.interval(result.interval) if result.interval else NO_INTERVAL
    return [Span(number.throughput(result.throughput), "main"), unit, Span(bounds, "under")]


def meter(share: float) -> Bar:
    return Bar([("", share)], "meter")


def _unit_of_all(results: Sequence[Result]) -> str:
    """Return the unit of all rates; empty where they have several."""
    units = {label.rate_unit(result.unit) for result in results}
    return units.pop() if len(units) == 1 else ""


def _scales(results: Sequence[Result]) -> bool:
    return any(result.key.devices > 1 for result in results)


def _published_form(results: Sequence[Result], notes: Sequence[DoubtNote]) -> Table:
    unit, scales = _unit_of_all(results), _scales(results)
    rate, ratios = unit or _("throughput"), (_("speedup"), _("efficiency")) if scales else ()
    header = [_("case"), *PUBLISHED, rate, *ratios, _("interval"), "n", _("memory (GiB)"), _("doubts")]
    rows = [_published_row(case, result, notes, not unit, scales) for case, result in label.cases(results)]
    return Table(header, rows, frozenset(range(1, len(header) - 1)))


def _published_row(
    case: str, result: Result, notes: Sequence[DoubtNote], with_unit: bool, scales: bool
) -> list[Text]:
    key = result.key
    unit = f" {label.rate_unit(result.unit)}" if with_unit else ""
    alone = key.devices == 1 and result.speedup is not None and result.efficiency is not None
    return [
        case,
        str(key.nodes),
        str(key.devices_per_node),
        number.MISSING if key.batch_per_device is None else str(key.batch_per_device),
        f"{number.throughput(result.throughput)}{unit}",
        *((("1", "100 %") if alone else _ratios(result, 1)) if scales else ()),
        number.interval(result.interval),
        str(result.n),
        number.gibibytes(result.memory_bytes),
        [piece for mark in doubt_marks(result, notes) for piece in (mark.name, mark)],
    ]


def _full_table(results: Sequence[Result], notes: Sequence[DoubtNote]) -> Table:
    """Return a row for each result; a column of which no result has a figure is left out."""
    unit, scales, first = _unit_of_all(results), _scales(results), results[0].unit
    columns: list[tuple[Text, Callable[[Result], Text]]] = [
        ([_("throughput"), Span(unit, "unit")], partial(rate_cell, with_unit=not unit)),
        (Span("n", "as-is"), lambda result: result.n),
    ]
    if scales:
        columns += [(_("speedup"), _speedup_cell), (_("efficiency"), _efficiency_cell)]
    columns.append((_("step p50"), _step_cell))
    optional: list[tuple[Text, Callable[[Result], str]]] = [
        (_("memory (GiB)"), lambda result: number.gibibytes(result.memory_bytes)),
        (_("data wait"), lambda result: number.percent(result.data_wait_share)),
        (Span(f"{first}/J", "as-is"), lambda result: number.significant(result.samples_per_joule, 3)),
        ("MFU", lambda result: number.percent(result.utilisation.value if result.utilisation else None)),
    ]
    columns += [
        (name, cell) for name, cell in optional if any(cell(each) != number.MISSING for each in results)
    ]
    rows: list[list[Text]] = [
        [
            [group.name, Span([result.key.topology, *doubt_marks(result, notes)], "under")],
            *(cell(result) for _name, cell in columns),
        ]
        for group in label.by_series(results)
        for result in group.results
    ]
    header = [_("case"), *(name for name, _cell in columns)]
    return Table(header, rows, frozenset(range(1, len(header))), sortable=False, looks={0: "name"})


def _speedup_cell(result: Result) -> Text:
    """Nothing on one device: over itself, it says nothing."""
    if result.key.devices == 1:
        return ""
    return ratio_cell(result.speedup) if result.speedup else number.MISSING


def _efficiency_cell(result: Result) -> Text:
    if result.key.devices == 1:
        return ""
    share = result.efficiency
    return [number.percent(share.value), meter(share.value)] if share and result.speedup else number.MISSING


def _step_cell(result: Result) -> Text:
    times = result.step_times
    return [number.duration(times.p50), Span(f"p99 {number.duration(times.p99)}", "under")]


ONE_DEVICE = "-1n1g"  # of a program's name says nothing
VERDICTS = {
    ABVerdict.FASTER: _("faster"),
    ABVerdict.SLOWER: _("slower"),
    ABVerdict.SAME: _("the same"),
    ABVerdict.UNDECIDED: _("not certain"),
}


def contrast_section(report: RunReport) -> Section:
    """The cases beside the baseline that they took turns with."""
    note = _(
        "The trials of a round take turns in random order. A ratio is certain once bets on the signs of the"
        " differences, looked at after every pair, have grown enough (Ville 1939); {confidence} holds for all"
        " ratios and looks together.",
        confidence=number.percent(1 - ERROR, 0),
    )
    told: list[Block] = [contrast_table(report), Sentence(note, "note")]
    return without("terminal", Section(_("Compared with the baseline"), told))


def contrast_table(report: RunReport) -> Table:
    """One row for each case, the baseline first."""
    results = results_by_case(report)
    baseline = report.contrasts[0].baseline
    sides = [(baseline, None), *((each.case, each) for each in report.contrasts)]
    rows = [_contrast_row(case, results.get(case), contrast) for case, contrast in sides]
    rate = "/".join({label.rate_unit(result.unit): None for result in results.values()}) or _("throughput")
    header = [_("case"), rate, _("interval"), "n", _("ratio"), "", _("verdict"), _("doubts")]
    return Table(header, rows, frozenset({1, 3, 4}), sortable=False)


def _contrast_row(case: str, result: Result | None, contrast: BaselineContrast | None) -> list[Text]:
    judged = contrast and contrast.judgement
    return [
        case.removesuffix(ONE_DEVICE),
        number.throughput(result.throughput if result else None),
        number.interval(result.interval) if result and result.interval else "",
        str(result.n if result else 0),
        "1" if contrast is None else f"×{judged.ratio:.3f}" if judged else number.MISSING,
        contrast_bounds(contrast) if contrast else "",
        VERDICTS[contrast.verdict] if contrast else _("baseline"),
        doubt_names([code.value for code in grave_doubts([result])]),
    ]


def contrast_sentence(report: RunReport, contrast: BaselineContrast) -> Message:
    """`train-compile is 1.230 × train [1.190, 1.270], certain after 6 pairs.`, and what makes it doubtful."""
    case, baseline = contrast.case.removesuffix(ONE_DEVICE), contrast.baseline.removesuffix(ONE_DEVICE)
    judged = contrast.judgement
    if judged is None:
        failed = contrast.baseline if contrast.baseline not in results_by_case(report) else contrast.case
        ended = next((line for line in report.trials if line.case == failed and line.detail), None)
        return _(
            "{case} has no ratio to {baseline}: {failed} gave no figure ({reason}).",
            case=case,
            baseline=baseline,
            failed=failed.removesuffix(ONE_DEVICE),
            reason=f"{ended.outcome}: {ended.detail}".rstrip(".") if ended else _("it did not run"),
        )
    told = {
        "case": case,
        "baseline": baseline,
        "ratio": f"{judged.ratio:.3f}",
        "bounds": contrast_bounds(contrast),
        "pairs": judged.pairs,
        "largest": number.percent(contrast.largest_difference),
    }
    if contrast.verdict is ABVerdict.UNDECIDED and not contrast.bounds:
        sentence = _(
            "{case} is {ratio} × {baseline}, without an interval: too few pairs ({pairs}), {needed} or more"
            " say something.",
            needed=FEWEST_PAIRS,
            **told,
        )
    elif contrast.verdict is ABVerdict.UNDECIDED:
        sentence = _(
            "{case} is {ratio} × {baseline} {bounds} after {pairs} pairs: not certain, but no difference"
            " larger than {largest}.",
            **told,
        )
    elif contrast.verdict is ABVerdict.SAME:
        sentence = _(
            "{case} is as fast as {baseline}: {ratio} × {bounds}, no difference larger than {largest},"
            " certain after {pairs} pairs.",
            **told,
        )
    else:
        sentence = _("{case} is {ratio} × {baseline} {bounds}, certain after {pairs} pairs.", **told)
    return joined(list(filter(None, (sentence, contrast_doubts(report, contrast)))), " ")


def contrast_doubts(report: RunReport, contrast: BaselineContrast) -> str:
    """Return `In doubt: host-busy.`, of either side, or nothing."""
    results = results_by_case(report)
    codes = grave_doubts([results.get(contrast.baseline), results.get(contrast.case)])
    names = joined([code.label for code in codes], LIST)
    return _("In doubt: {doubts}.", doubts=names) if names else ""


def contrast_bounds(contrast: BaselineContrast) -> str:
    return f"[{contrast.bounds[0]:.3f}, {contrast.bounds[1]:.3f}]" if contrast.bounds else ""


def grave_doubts(results: Sequence[Result | None]) -> list[DoubtCode]:
    doubts = (doubt for result in results if result for doubt in result.doubts)
    return list(dict.fromkeys(doubt.code for doubt in doubts if doubt.severity is not Severity.NOTE))


def results_by_case(report: RunReport) -> dict[str, Result]:
    by_key = {result.key: result for result in report.results}
    return {case: by_key[key] for case, key in report.keys.items() if key in by_key}
