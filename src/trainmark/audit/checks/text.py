"""What the text says against what the tables show.

A single figure, lists of devices, a difference given as a range, figures “with or without X, respectively”,
and the device that a heading names against the one that the sentence below it says was used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from trainmark.audit.finding import AuditFinding, Findings
from trainmark.audit.grid import GridRow, ScalingSeries, TableFigure, TableGrid, all_grids, all_series
from trainmark.audit.report import Passage, Report
from trainmark.audit.statements import Statement, statements
from trainmark.audit.terms import Number, normalize_text

LIST_OF_CARDS = re.compile(r"(?:单卡|\d{1,4} ?卡)(?:[、,及和] ?\d{1,4} ?卡){1,12}")
LIST_OF_DEVICES = re.compile(
    r"(?:number of (?:devices|gpus): ?|\bon )((?:\d{1,4},? (?:and )?){2,12}\d{1,4})(?= gpus| devices|\.|$)",
    re.I,
)
ACCURACY_PER_ROUNDING = 1e-9


def check_text_against_tables(report: Report) -> Findings:
    claims = list(statements(report))
    rows = [row for series in all_series(report) for row in series.rows]
    yield from _check_single_figures(rows, claims)
    for row in rows:
        yield from _check_accuracy(row, claims)
    yield from _check_longer_runs(claims)
    yield from _check_missing_rows(report, rows)


def _check_single_figures(rows: list[GridRow], claims: list[Statement]) -> Findings:
    """Where the tables hold one figure of a kind and the text gives one, they are the same."""
    for role, what, mentions in (
        ("throughput", "throughput", [(s.rate, s.line) for s in claims if s.rate]),
        ("time_to_train", "time", [(s.seconds, s.line) for s in claims if s.seconds and s.epochs]),
    ):
        shown = [figure for row in rows for figure in row.of(role)]
        if len(shown) != 1 or len(mentions) != 1:
            continue
        number, (stated, line) = shown[0].number, mentions[0]
        in_seconds = role != "time_to_train" or "sec" in shown[0].head.lower() or "秒" in shown[0].head
        if in_seconds and abs(number.value - stated.value) > number.half_unit + stated.half_unit:
            yield _text_finding(shown[0], f"{stated.value:,g}", line, what)


def _check_accuracy(row: GridRow, claims: list[Statement]) -> Findings:
    """The accuracy of a row against the sentence that gives the same time to train."""
    times, accuracies = row.of("time_to_train"), row.of("accuracy")
    if len(times) != 1 or len(accuracies) != 1:
        return
    shown = accuracies[0]
    for statement in claims:
        if not (statement.seconds and statement.accuracy) or statement.seconds.value != times[0].number.value:
            continue
        if _same_accuracy(statement.accuracy, shown.number):
            continue
        other = next(
            (s for s in claims if s.accuracy and s.epochs and _same_accuracy(s.accuracy, shown.number)), None
        )
        if other is None:
            yield _text_finding(shown, f"{statement.accuracy.value:g}", statement.line, "accuracy")
            continue
        claimed = f"accuracy {shown.cell.text} in {times[0].cell.text} s"
        derived = f"accuracy {statement.accuracy.value:g} in {times[0].cell.text} s"
        message = (
            f"line {statement.line} gives {statement.accuracy.value:g} for the run of this time; "
            f"{shown.cell.text} is of another run, of {other.epochs} epochs (line {other.line})."
        )
        yield AuditFinding("row-of-two-runs", shown.cell.line, claimed, derived, message)


def _check_longer_runs(claims: list[Statement]) -> Findings:
    runs = sorted(
        (s.epochs, s.accuracy.value, s.line)
        for s in claims
        if s.epochs and s.accuracy and s.accuracy.value > 50
    )
    for (epochs, accuracy, line), (more, later, place) in pairwise(runs):
        if more > epochs and later < accuracy:
            derived = f"{accuracy:g} % after {epochs} epochs (line {line})"
            message = f"{more} epochs end below {epochs}: one run of each does not tell which is right."
            yield AuditFinding(
                "longer-but-less-accurate", place, f"{later:g} % after {more} epochs", derived, message
            )


def _check_missing_rows(report: Report, rows: list[GridRow]) -> Findings:
    """Device counts that the text says were tested, and no table has."""
    shown = {row.devices for row in rows if row.devices}
    if len(shown) < 2:
        return
    lines: dict[int, int] = {}
    for passage in report.prose:
        for devices in _listed_devices(passage.text[:2000]):
            lines.setdefault(devices, passage.line)
    for devices, line in sorted(lines.items()):
        if devices not in shown:
            derived = f"tables of {', '.join(map(str, sorted(shown)))} devices"
            message = f"no table has a row of {devices} devices."
            yield AuditFinding("missing-rows", line, f"tested on {devices} devices", derived, message)


def _listed_devices(text: str) -> set[int]:
    chinese = " ".join(match[0] for match in LIST_OF_CARDS.finditer(text))
    english = " ".join(match[1] for match in LIST_OF_DEVICES.finditer(text))
    counts = {int(count) for count in re.findall(r"\d+", f"{chinese} {english}")}
    return counts | ({1} if "单卡" in chinese else set())


def _text_finding(shown: TableFigure, stated: str, line: int, what: str) -> AuditFinding:
    message = f"the text on line {line} gives {stated}."
    return AuditFinding(
        "text-against-table", shown.cell.line, f"{what} {shown.cell.text}", f"{what} {stated}", message
    )


def _same_accuracy(one: Number, other: Number) -> bool:
    return abs(one.value - other.value) <= ACCURACY_PER_ROUNDING


PERCENT_RANGE = re.compile(r"(\d{1,2}(?:\.\d{1,2})?) ?%? ?(?:~|-|–|至|to) ?(\d{1,2}(?:\.\d{1,2})?) ?%")
SPEAKS_OF_DIFFERENCE = re.compile(r"性能差异|速度差异|difference", re.I)
SPEAKS_OF_BOTH = re.compile(r"两份|both|two (?:sets|tables)", re.I)
LEAST_SHARED = 2


def check_stated_differences(report: Report) -> Findings:
    series = list(all_series(report))
    for passage in report.prose:
        text = passage.text[:2000]
        match = PERCENT_RANGE.search(text)
        if match and SPEAKS_OF_DIFFERENCE.search(text) and SPEAKS_OF_BOTH.search(text):
            after = [one for one in series if one.table.line > passage.line][:2]
            if len(after) == 2:
                yield from _compare_range(passage, match, after)


def _compare_range(passage: Passage, match: re.Match[str], pair: list[ScalingSeries]) -> Findings:
    one, other = (_by_devices(series) for series in pair)
    shares = [abs(other[n] / one[n] - 1) * 100 for n in one.keys() & other.keys() if one[n] > 0]
    if len(shares) < LEAST_SHARED:
        return
    low, high = min(shares), max(shares)
    slack = 0.5 * 10.0 ** -len(match[1].partition(".")[2]) + 0.15
    if abs(low - float(match[1])) > slack or abs(high - float(match[2])) > slack:
        message = (
            f"the tables on lines {pair[0].table.line} and {pair[1].table.line} differ by "
            f"{low:.1f} % to {high:.1f} % where both have a row."
        )
        yield AuditFinding(
            "stated-difference", passage.line, match[0], f"{low:.1f} % to {high:.1f} %", message
        )


def _by_devices(series: ScalingSeries) -> dict[int, float]:
    return {
        row.devices: row.of("throughput")[0].number.value
        for row in series.rows
        if row.devices and len(row.of("throughput")) == 1
    }


FIGURE_IN_TEXT = r"(?<![\w.,])(\d{1,9}(?:[.,]\d{1,6})?) ?(%|x|×)?"
FIGURE_PAIR = re.compile(FIGURE_IN_TEXT + r" ?(?:to|and|or|vs\.?|versus) ?" + FIGURE_IN_TEXT, re.I)
WITH_OR_WITHOUT = re.compile(
    r"\b(with|without)(?: \w+){0,2}? (?:and|or) (with|without) ([\w.+-]{2,40}?)[.,]? respectively", re.I
)
CHARACTERS_BEFORE = 120
LESS_IS_BETTER = re.compile(r"time|latency|memory|loss|\bGB\b|\bGiB\b|seconds|minutes|hours", re.I)


def check_reversed_text(report: Report) -> Findings:
    for passage in report.prose:
        text = passage.text[:4000]
        for order in WITH_OR_WITHOUT.finditer(text):
            before = text[max(0, order.start() - CHARACTERS_BEFORE) : order.start()]
            # Of several pairs the last is meant.
            pairs = list(FIGURE_PAIR.finditer(before))
            if pairs and not LESS_IS_BETTER.search(before[pairs[-1].start() :]):
                yield from _check_order(report, passage, order, pairs[-1])


def _check_order(report: Report, passage: Passage, order: re.Match[str], pair: re.Match[str]) -> Findings:
    first, second = (float(pair[index].replace(",", "")) for index in (1, 3))
    if order[1].lower() == order[2].lower() or first == second:
        return
    with_it, without_it = (first, second) if order[1].lower() == "with" else (second, first)
    name = order[3].strip(".,")
    gains = [gain for grid in all_grids(report) for gain in _gains_of(grid, name)]
    if not gains:
        return
    rises = sum(after > before for before, after, _ in gains)
    if rises in (0, len(gains)) and (with_it > without_it) != (rises == len(gains)):
        unit = pair[2] or pair[4] or ""
        speed = "faster" if rises else "slower"
        claimed = f"{with_it:g}{unit} with {name}, {without_it:g}{unit} without"
        derived = f"{without_it:g}{unit} with {name}, {with_it:g}{unit} without"
        message = f"the row with {name} on line {gains[0][2]} is the {speed} one."
        yield AuditFinding("text-against-table", passage.line, claimed, derived, message)


def _gains_of(grid: TableGrid, name: str) -> Iterator[tuple[float, float, int]]:
    """Throughput without and with the thing named, from rows whose labels differ in it alone."""
    labels = {_row_label(row.cells[0].text): row for row in grid.rows}
    for label, row in labels.items():
        if name.lower() not in label:
            continue
        rest = _row_label(label.replace(name.lower(), " "))
        before = labels.get(rest)
        for figure in row.of("throughput") if before else ():
            other = before.in_column(figure.column) if before else None
            if other:
                yield other.number.value, figure.number.value, row.line


def _row_label(text: str) -> str:
    return " ".join(re.sub(r"[^\w.]+", " ", text.lower()).split())


DEVICE_MENTION = re.compile(
    r"(?<![\w-])([VAHPTLB]\d{2,4}S?)(?:[- ]?(?:SXM\d?|PCIe?|NVL|HBM\de?))?[- (]{0,2}"
    r"(?:(\d{2,3}) ?G(?:i?B)?(?![a-z]))?",
    re.A,
)
SPEAKS_OF_RESULTS = re.compile(
    r"results? (?:were|was|are)|obtained|measured|measurements|performed|(?:ran|running|run) ", re.I
)
LINES_BELOW = 8


@dataclass(frozen=True)
class DeviceMention:
    """A device by its family, and its memory where that is said."""

    family: str
    gigabytes: int | None
    text: str


def check_headings(report: Report) -> Findings:
    for heading in report.headings:
        named = _device_mentions(heading.text)
        below = _first_sentence(report, heading) if len(named) == 1 else None
        used = _device_mentions(below.text[:2000]) if below else []
        if below and len(used) == 1 and _devices_differ(named[0], used[0]):
            message = f"the results under this heading are of {used[0].text} by line {below.line}."
            yield AuditFinding("heading-mismatch", heading.line, named[0].text, used[0].text, message)


def _first_sentence(report: Report, heading: Passage) -> Passage | None:
    """The first sentence under a heading that says what its results were obtained on."""
    table = min((t.line for t in report.tables if t.line > heading.line), default=None)
    for passage in report.prose:
        is_below = (
            heading.line < passage.line <= heading.line + LINES_BELOW and passage.headings == heading.headings
        )
        if (
            is_below
            and (table is None or passage.line < table)
            and SPEAKS_OF_RESULTS.search(passage.text[:2000])
        ):
            return passage
    return None


def _device_mentions(text: str) -> list[DeviceMention]:
    mentions: dict[tuple[str, str | None], DeviceMention] = {}
    for match in DEVICE_MENTION.finditer(normalize_text(text)):
        memory = int(match[2]) if match[2] else None
        mentions.setdefault((match[1], match[2]), DeviceMention(match[1], memory, match[0].strip(" -(")))
    # `DGX A100 (8x A100 80GB)` names one device, once without its memory.
    with_memory = {mention.family for mention in mentions.values() if mention.gigabytes}
    return [m for m in mentions.values() if m.gigabytes or m.family not in with_memory]


def _devices_differ(one: DeviceMention, other: DeviceMention) -> bool:
    sizes_differ = one.gigabytes and other.gigabytes and one.gigabytes != other.gigabytes
    return one.family != other.family or bool(sizes_differ)
