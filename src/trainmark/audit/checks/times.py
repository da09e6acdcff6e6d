"""Times against throughput: of the training, of epochs and of steps, in tables and sentences.

Throughput times time is compared with epochs times the images of an epoch, the time of a step with batch and
throughput, and a figure with the same one in another unit.
"""

from __future__ import annotations

import re

from trainmark.audit.finding import AuditFinding, Findings
from trainmark.audit.grid import GridRow, TableFigure, all_grids, all_series, counts_whole_job
from trainmark.audit.models import IMAGENET_IMAGES, is_of_resnet50, names_another_model
from trainmark.audit.report import Report
from trainmark.audit.statements import EPOCHS, LONGEST_LINE, NOT_MEASURED, SENTENCE, statements
from trainmark.audit.terms import DURATION, Number, is_per_device, parse_duration, seconds_per_unit

EPOCHS_OPTION = re.compile(r"--(?:num_)?epochs?[ =](\d{1,4})\b|--iter_unit=epoch --num_iter=(\d{1,4})\b")
# Start-up, evaluation and checkpoints take time that the throughput of training leaves out.
USUAL_OVERHEAD = 1.05
# More than this much on top, and something other than that was counted.
LARGEST_OVERHEAD = 1.5
TIME_ROUNDING = 0.995
TOO_LITTLE = "too little time for the epochs"


def check_time_to_train(report: Report) -> Findings:
    epochs_by_seconds = {
        statement.seconds.value: statement.epochs
        for statement in statements(report)
        if statement.seconds and statement.epochs
    }
    options = {int(a or b) for block in report.code for a, b in EPOCHS_OPTION.findall(" ".join(block.lines))}
    only_option = min(options) if len(options) == 1 else None
    told = {int(count) for passage in report.prose for count in EPOCHS.findall(passage.text[:LONGEST_LINE])}
    for grid in all_grids(report):
        for row in grid.rows if is_of_resnet50(grid) else ():
            times, rates = row.of("time_to_train"), row.of("throughput")
            if len(times) != 1 or len(rates) != 1 or not counts_whole_job(rates[0]):
                continue
            seconds = times[0].number.value
            epochs = _epochs_of(row) or epochs_by_seconds.get(seconds) or only_option
            if epochs and seconds > 0:
                yield from _compare_time(times[0], rates[0].number, seconds, epochs)
            elif len(told) == 1 and seconds > 0:
                # The one number of epochs in the text may be of another run: only too little time is told.
                found = _compare_time(times[0], rates[0].number, seconds, *told)
                yield from (finding for finding in found if TOO_LITTLE in finding.message)


def _compare_time(time: TableFigure, rate: Number, seconds: float, epochs: int) -> Findings:
    if rate.value <= 0:
        return
    needed = epochs * IMAGENET_IMAGES / rate.value
    share = seconds / needed
    if TIME_ROUNDING <= share <= USUAL_OVERHEAD:
        return
    is_possible = TIME_ROUNDING <= share <= LARGEST_OVERHEAD
    effective = epochs * IMAGENET_IMAGES / seconds
    seen = rate.value * seconds / IMAGENET_IMAGES
    reason = (
        TOO_LITTLE
        if share < 1
        else f"{share - 1:.0%} of time on top, which evaluation and start-up would have to explain"
    )
    claimed = f"{time.cell.text} for {epochs} epochs at {rate.value:g} images/s"
    derived = f"{effective:.1f} images/s over the whole time"
    message = f"time and throughput make {seen:.1f} epochs of {IMAGENET_IMAGES:,} images: {reason}."
    yield AuditFinding("time-throughput-mismatch", time.cell.line, claimed, derived, message, is_possible)


def _epochs_of(row: GridRow) -> int | None:
    figures = row.of("epochs")
    return int(figures[0].number.value) if len(figures) == 1 and figures[0].number.value < 1e6 else None


TIMESPAN = rf"(?P<time>{DURATION.pattern})(?![a-z])"
EPOCHS_TOOK = re.compile(
    rf"(?<![\d.,])(?P<epochs>\d{{1,4}}) epochs?\b[^.;\d]{{0,40}}?\b(?:took|takes?|in|within|of)\b"
    rf" (?:about |only |just |~)?{TIMESPAN}",
    re.I | re.A,
)
ONE_EPOCH_TOOK = re.compile(
    rf"\b(?:an|one|each|every|per) epoch\b[^.;\d]{{0,20}}?\b(?:took|takes?|in|is)\b (?:about |~)?{TIMESPAN}",
    re.I | re.A,
)
# Epochs may be shortened by less than a rounded time shows.
LEAST_TIME_SHARE = 0.97


def check_epoch_times(report: Report) -> Findings:
    sentences = [
        (p.line, s) for p in report.prose for s in SENTENCE.split(p.text[:2000]) if "epoch" in s.lower()
    ]
    each = [parse_duration(match["time"]) for _, text in sentences for match in ONE_EPOCH_TOOK.finditer(text)]
    rate = _fastest_rate(report)
    for line, text in sentences:
        for match in EPOCHS_TOOK.finditer(text) if not NOT_MEASURED.search(text) else ():
            epochs, time = int(match["epochs"]), parse_duration(match["time"])
            if not time or epochs < 2:
                continue
            if shortest := [number.value - number.unit for number in each if number]:
                yield from _too_short_finding(
                    line, match, time, epochs * min(shortest), "the stated time of one"
                )
            elif rate:
                needed = epochs * IMAGENET_IMAGES / rate
                yield from _too_short_finding(line, match, time, needed, f"{rate:,.0f} images/s")


def _fastest_rate(report: Report) -> float | None:
    """The highest rate of a report whose rates are all of ResNet-50: no run of it was faster."""
    rates = []
    for grid in all_grids(report):
        for row in grid.rows if grid.with_role("throughput") else ():
            if not is_of_resnet50(grid) or names_another_model(row):
                return None
            for figure in row.of("throughput"):
                each = (row.devices or 0) if is_per_device(figure.head) else 1
                if not each:
                    return None
                rates.append(figure.number.high * each / (seconds_per_unit(figure.head) or 1.0))
    return max(rates, default=None)


def _too_short_finding(line: int, match: re.Match[str], time: Number, needed: float, by: str) -> Findings:
    if time.value + time.unit < LEAST_TIME_SHARE * needed:
        claimed = f"{match['epochs']} epochs in {match['time'].strip()}"
        derived = f"{needed / 60:.1f} minutes"
        message = f"{match['epochs']} epochs take {needed / 60:.1f} minutes at {by}."
        yield AuditFinding("time-throughput-mismatch", line, claimed, derived, message)


STATED_TIME = r"(?<![\d.,])(\d{1,6}(?:\.\d{1,4})?) ?(ms|milliseconds|s|sec|seconds)\b"
STEP_TIME = re.compile(
    rf"(?:step|iteration) time(?: is| was| of|:)? (?:about |around |~)?{STATED_TIME}"
    rf"|{STATED_TIME} ?(?:/|per|an?|each) ?(?:training )?(?:step|iteration)\b",
    re.I,
)
STATED_DEVICES = re.compile(
    r"(?<![\d.,])(\d{1,5}) ?(?:x ?)?(?:gpus?|devices?|cards?|accelerators?|npus?|tpus?)\b", re.I
)
IN_SAMPLES = re.compile(r"ima?ge?s?\b|samples?\b|seq(?:uence)?s?\b|sentences?\b|examples?\b|张", re.I)
# A part of a step, another program, or a wish.
NOT_THE_STEP = re.compile(
    r"forward|backward|optimi[sz]er|reduce|inference|latency|data|load|without|before|from|than|target|baseline"
    r"|compil|first|warm|eval|valid|overhead|save[sd]?|extra|additional|up to|at (?:most|least)|accum|batch",
    re.I,
)
STEP_TIME_TOLERANCE = 0.05


def check_step_times(report: Report) -> Findings:
    rows = [row for grid in all_grids(report) for row in grid.rows if row.batch and row.of("throughput")]
    for passage in report.prose if rows else ():
        for sentence in SENTENCE.split(passage.text[:2000]):
            found = list(STEP_TIME.finditer(sentence))
            if len(found) == 1 and not NOT_THE_STEP.search(sentence):
                yield from _compare_step_time(passage.line, sentence, found[0], rows)


def _compare_step_time(line: int, sentence: str, match: re.Match[str], rows: list[GridRow]) -> Findings:
    text, unit = match[1] or match[3], match[2] or match[4]
    scale = 1e-3 if unit.startswith("m") else 1.0
    stated, slack = float(text) * scale, scale * 10.0 ** -len(text.partition(".")[2])
    named = STATED_DEVICES.search(sentence)
    meant = [row for row in rows if not named or row.devices == int(named[1])]
    times = [_row_step_seconds(row, figure) for row in meant for figure in row.of("throughput")]
    derived = [time for time in times if time]
    if derived and all(abs(stated - seconds) > slack + STEP_TIME_TOLERANCE * seconds for seconds in derived):
        nearest = min(derived, key=lambda seconds: abs(seconds - stated))
        message = f"batch and throughput of the tables make {nearest * 1000:.1f} ms at the nearest."
        yield AuditFinding(
            "step-time-mismatch", line, f"{text} {unit} a step", f"{nearest * 1000:.1f} ms", message
        )


def _row_step_seconds(row: GridRow, figure: TableFigure) -> float | None:
    """The step of a row: its batch a device, taken as one of all devices where the rate is one of all."""
    said = f"{figure.head} {figure.number.rest}"
    each = is_per_device(figure.head)
    if not IN_SAMPLES.search(said) or not row.batch or not (each or row.devices) or figure.number.value <= 0:
        return None
    unit = seconds_per_unit(figure.head) or 1.0
    return row.batch * (1 if each else row.devices or 1) * unit / figure.number.value


# Throughput and time a step come from one clock; means of rates differ from it by less than this.
CLOCK_TOLERANCE = 0.1


def check_units(report: Report) -> Findings:
    by_rate = {
        statement.rate.value: statement
        for statement in statements(report)
        if statement.rate and statement.rate_unit
    }
    for series in all_series(report):
        unit_told = seconds_per_unit(series.table.caption)
        heads = {f.column: f for row in series.rows for f in row.of("throughput")}
        for figure in heads.values():
            unit = seconds_per_unit(figure.head)
            if unit and unit_told and unit != unit_told:
                yield _unit_finding(series.table.line, figure.head, series.table.caption, "the caption")
        for row in series.rows:
            for figure in row.of("throughput"):
                statement = by_rate.get(figure.number.value)
                unit = seconds_per_unit(figure.head)
                if statement and unit and unit != seconds_per_unit(f"samples/{statement.rate_unit}"):
                    where = f"the text on line {statement.line}"
                    yield _unit_finding(figure.cell.line, figure.head, f"per {statement.rate_unit}", where)
            yield from _check_step_time_column(row)


def _unit_finding(line: int, claimed: str, derived: str, source: str) -> AuditFinding:
    message = f"{source} gives the same figure in another unit."
    return AuditFinding("unit-mismatch", line, claimed, derived[:80], message)


def _check_step_time_column(row: GridRow) -> Findings:
    rates, times = row.of("throughput"), row.of("step_time")
    if len(rates) != 1 or len(times) != 1 or not row.batch or not row.devices:
        return
    (shown,), (time,) = rates, times
    # A time whose cell or head names its unit is in seconds.
    if time.number.rest != "s" or time.number.value <= 0:
        return
    derived = row.batch * row.devices / time.number.value
    rate = shown.number.value / (seconds_per_unit(shown.head) or 1.0)
    if rate > 0 and not 1 - CLOCK_TOLERANCE < rate / derived < 1 + CLOCK_TOLERANCE:
        claimed = f"{shown.cell.text} ({shown.head})"
        message = f"{row.devices} × {row.batch} samples in {time.cell.text} ({time.head})."
        yield AuditFinding(
            "step-time-mismatch", shown.cell.line, claimed, f"{derived:.1f} samples/s", message
        )
