"""What `trainmark fit` found, as text, beside what was published."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from trainmark.base.typed_json import encode
from trainmark.cli.terminal import terminal_width
from trainmark.logs.ledger import load_of
from trainmark.logs.ledger.entry import SIZE_AXIS, axis_of, published_names
from trainmark.measure.fit import first_failure, memory_line, memory_prediction
from trainmark.measure.key import Axes
from trainmark.runner.fit import FitAnswer
from trainmark.runner.fit_trial import BATCH
from trainmark.view import terminal
from trainmark.view.blocks import Table
from trainmark.workloads.declaration import Workload

CARD = re.compile(r"\b(\d+) ?GB\b", re.IGNORECASE)


@dataclass(frozen=True)
class Published:
    """The largest batch that a source has run; `largest` where it says that no larger one fits."""

    title: str
    page: str
    framework: str
    device: str
    precision: str
    batch: int
    largest: bool
    memory_mb: float | None


def published(
    workload: Workload, framework: str, precision: str, axes: Axes, gigabytes: int
) -> list[Published]:
    """Of the same framework, and whoever else says what is the most, or how much memory it took."""
    defaults = workload.defaults
    best: dict[tuple[str, str], Published] = {}
    for entry in load_of(published_names(workload.name, dict(axes).get(SIZE_AXIS))):
        row = entry.row
        card = CARD.search(row.device or "")
        if row.precision != precision:
            continue
        # A table that does not say an axis has it at its default; accumulation does not change what fits.
        compared = ((name, value) for name, value in axes if name not in (SIZE_AXIS, "accumulate"))
        if any((axis_of(row, name) or defaults[name]) != value for name, value in compared):
            continue
        if not card or int(card[1]) != gigabytes or row.batch_per_device is None:
            continue
        if row.framework != framework and row.max_batch is None and row.memory_mb is None:
            continue
        candidate = Published(
            title=entry.origin.title,
            page=entry.origin.page,
            framework=row.framework,
            device=str(row.device),
            precision=precision,
            batch=row.batch_per_device,
            largest=row.max_batch == row.batch_per_device,
            memory_mb=row.memory_mb,
        )
        source = (entry.source, row.framework)
        if source not in best or _rank(best[source]) < _rank(candidate):
            best[source] = candidate
    return sorted(best.values(), key=lambda each: (each.framework != framework, -each.largest, each.title))


def _rank(one: Published) -> tuple[int, float]:
    return one.batch, one.memory_mb or 0.0


GIB, MIB = 2**30, 2**20
HEADER = (
    "framework",
    "precision",
    "layout",
    "axes",
    "memory",
    "largest",
    "peak",
    "fixed",
    "a sample",
    "off by",
)
NUMBERS = frozenset(range(4, len(HEADER)))


def text(answers: Sequence[FitAnswer]) -> Iterator[str]:
    """One table over all of them, then what each rests on."""
    header = [_unit_header(answers[0]) if name == "a sample" else name for name in HEADER]
    rows = [_cells(answer) for answer in answers]
    yield from terminal.table(Table(header, rows, NUMBERS), terminal_width())
    for answer in answers:
        yield ""
        yield from _details(answer)


def _unit_header(answer: FitAnswer) -> str:
    """`a sample`, `a sequence`, `per length`: what the memory grows with."""
    setting = answer.setting
    if setting.search != BATCH:
        return f"per {setting.search}"
    return f"a {(setting.family.workload.batch_unit or 'samples').removesuffix('s')}"


def tree(answer: FitAnswer) -> dict[str, Any]:
    line, foretold = memory_line(answer.tries), memory_prediction(answer.tries)
    return {
        **encode(answer.setting),
        "step": answer.step,
        "most": answer.most,
        "largest": answer.largest,
        "does_not_fit": first_failure(answer.tries, answer.step),
        "peak": _peak(answer),
        "fixed": line.fixed if line else None,
        "per_image": line.per_image if line else None,
        "residual": line.residual if line else None,
        "prediction": {**asdict(foretold), "error": foretold.error} if foretold else None,
        "tries": [asdict(each) for each in answer.tries],
        "measured": answer.measured,
        "remembered": answer.remembered,
        "published": [asdict(each) for each in _published(answer)],
    }


def _cells(answer: FitAnswer) -> tuple[str, ...]:
    setting, line = answer.setting, memory_line(answer.tries)
    return (
        " ".join(filter(None, [setting.framework, setting.version])),
        setting.precision,
        setting.layout + (" compile" if setting.compile else ""),
        setting.axis_labels,
        _gib(setting.cap or setting.memory),
        str(answer.largest or "none"),
        _gib(_peak(answer)),
        _gib(line.fixed if line else None),
        f"{line.per_image / MIB:.2f} MiB" if line else "n/a",
        _gib(line.residual if line else None),
    )


def _details(answer: FitAnswer) -> Iterator[str]:
    setting = answer.setting
    cap = f", capped at {_gib(setting.cap)}" if setting.cap else ""
    yield f"{setting} on {setting.device_name}{cap}"
    rows = [
        (
            f"  {each.batch}",
            "fits" if each.fits else "refused" if each.refused else "oom",
            _gib(each.peak),
            f"{each.seconds:.0f}",
            each.detail,
        )
        for each in answer.tries
    ]
    header = (f"  {setting.search}", "outcome", "peak", "seconds", "")
    yield from terminal.table(Table(header, rows, frozenset({0, 2, 3})), terminal_width())
    yield from (f"  {sentence}" for sentence in _sentences(answer))


def _sentences(answer: FitAnswer) -> Iterator[str]:
    line, failed = memory_line(answer.tries), first_failure(answer.tries, answer.step)
    if refused := [each for each in answer.tries if each.batch == failed and each.refused]:
        yield f"The program refuses {answer.setting.search} {failed}: {refused[0].detail}"
    elif failed is not None and line is not None:
        yield f"By the line through the peaks, {failed} would take {_gib(line.at(failed))}."
    elif failed is None:
        yield f"No larger {answer.setting.search} was tried: --most is {answer.most}."
    if foretold := memory_prediction(answer.tries):
        smaller = "batches" if answer.setting.search == BATCH else "values"
        yield (
            f"The smaller {smaller} foretell {_gib(foretold.predicted)} at {foretold.batch}: "
            f"off by {100 * foretold.error:+.1f} %."
        )
    if answer.remembered:
        yield f"Remembered from {answer.measured}; --again measures anew."
    for each in _published(answer):
        yield f"Published: {_claim(each)}"


def _claim(one: Published) -> str:
    most = ", the most that fits" if one.largest else ""
    memory = f", {one.memory_mb:,.0f} MiB in use" if one.memory_mb else ""
    return f"{one.batch} in {one.framework} on {one.device}{most}{memory} ({one.title}, {one.page})"


def _published(answer: FitAnswer) -> list[Published]:
    """By the size of the card: the cap's, or the device's own rounded up to what is on its box."""
    setting = answer.setting
    memory = setting.cap or setting.memory
    if setting.device != "cuda" or memory is None or setting.search != BATCH:
        return []
    return published(
        setting.family.workload,
        setting.framework,
        setting.precision,
        setting.axes,
        math.ceil(memory / GIB),
    )


def _peak(answer: FitAnswer) -> int | None:
    return next((each.peak for each in answer.tries if each.fits and each.batch == answer.largest), None)


def _gib(value: float | None) -> str:
    return "n/a" if value is None else f"{value / GIB:.2f} GiB"
