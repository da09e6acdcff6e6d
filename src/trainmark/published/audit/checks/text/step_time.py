"""The time of a step in a sentence, against batch and throughput of the rows that can be meant."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainmark.published.audit.claims.columns import is_per_device, seconds_per_unit
from trainmark.published.audit.claims.grid import Figure, Row, all_grids
from trainmark.published.audit.claims.statements import SENTENCE
from trainmark.published.audit.finding import Finding, Severity
from trainmark.published.audit.report.report import Report

TIME = r"(?<![\d.,])(\d{1,6}(?:\.\d{1,4})?) ?(ms|milliseconds|s|sec|seconds)\b"
STEP_TIME = re.compile(
    rf"(?:step|iteration) time(?: is| was| of|:)? (?:about |around |~)?{TIME}"
    rf"|{TIME} ?(?:/|per|an?|each) ?(?:training )?(?:step|iteration)\b",
    re.I,
)
DEVICES = re.compile(
    r"(?<![\d.,])(\d{1,5}) ?(?:x ?)?(?:gpus?|devices?|cards?|accelerators?|npus?|tpus?)\b", re.I
)
IN_SAMPLES = re.compile(r"ima?ge?s?\b|samples?\b|seq(?:uence)?s?\b|sentences?\b|examples?\b|张", re.I)
# A part of a step, another program, or a wish.
NOT_THE_STEP = re.compile(
    r"forward|backward|optimi[sz]er|reduce|inference|latency|data|load|without|before|from|than|target|baseline"
    r"|compil|first|warm|eval|valid|overhead|save[sd]?|extra|additional|up to|at (?:most|least)|accum|batch",
    re.I,
)
TOLERANCE = 0.05


def check(report: Report) -> Iterator[Finding]:
    rows = [row for grid in all_grids(report) for row in grid.rows if row.batch and row.of("throughput")]
    for passage in report.prose if rows else ():
        for sentence in SENTENCE.split(passage.text[:2000]):
            found = list(STEP_TIME.finditer(sentence))
            if len(found) == 1 and not NOT_THE_STEP.search(sentence):
                yield from _compare(report, passage.line, sentence, found[0], rows)


def _compare(
    report: Report, line: int, sentence: str, match: re.Match[str], rows: list[Row]
) -> Iterator[Finding]:
    text, unit = match[1] or match[3], match[2] or match[4]
    scale = 1e-3 if unit.startswith("m") else 1.0
    stated, slack = float(text) * scale, scale * 10.0 ** -len(text.partition(".")[2])
    named = DEVICES.search(sentence)
    meant = [row for row in rows if not named or row.devices == int(named[1])]
    times = [_seconds(row, figure) for row in meant for figure in row.of("throughput")]
    derived = [time for time in times if time]
    if derived and all(abs(stated - seconds) > slack + TOLERANCE * seconds for seconds in derived):
        nearest = min(derived, key=lambda seconds: abs(seconds - stated))
        yield Finding(
            "step-time-mismatch",
            Severity.ERROR,
            report.where(line),
            claimed=f"{text} {unit} a step",
            derived=f"{nearest * 1000:.1f} ms",
            message=f"batch and throughput of the tables make {nearest * 1000:.1f} ms at the nearest.",
        )


def _seconds(row: Row, figure: Figure) -> float | None:
    """The step of a row: its batch a device, taken as one of all devices where the rate is one of all."""
    said = f"{figure.head} {figure.number.rest}"
    each = is_per_device(figure.head)
    if not IN_SAMPLES.search(said) or not row.batch or not (each or row.devices) or figure.number.value <= 0:
        return None
    unit = seconds_per_unit(figure.head) or 1.0
    return row.batch * (1 if each else row.devices or 1) * unit / figure.number.value
