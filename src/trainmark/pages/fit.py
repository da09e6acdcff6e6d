"""The largest batch that trains: a table of all answers, what each rests on, and what was published."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from trainmark.base.typed_json import encode
from trainmark.logs.ledger import load_of
from trainmark.logs.ledger.entry import SIZE_AXIS, axis_of, published_names
from trainmark.measure.fit import first_failure, memory_line, memory_prediction
from trainmark.measure.key import Axes
from trainmark.pages import number
from trainmark.runner.fit import BATCH, FitAnswer
from trainmark.view.blocks import Block, Items, Page, Section, Table, Text
from trainmark.view.message import Message, _
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
FITS, REFUSED, NO_MEMORY = _("fits"), _("refused"), _("oom")


def fit_page(answers: Sequence[FitAnswer]) -> Page:
    return Page(_("The largest batch"), [_table(answers), *map(_section, answers)])


def fit_record(answer: FitAnswer) -> dict[str, Any]:
    """Return the answer under the names of `trainmark fit --json`."""
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


def _table(answers: Sequence[FitAnswer]) -> Table:
    header = [
        *(_("framework"), _("precision"), _("layout"), _("axes"), _("memory"), _("largest"), _("peak")),
        *(_("fixed"), _unit_header(answers[0]), _("off by")),
    ]
    return Table(header, [_cells(answer) for answer in answers], frozenset(range(4, len(header))))


def _unit_header(answer: FitAnswer) -> Message:
    """`a sample`, `a sequence`, `per length`: what the memory grows with."""
    setting = answer.setting
    if setting.search != BATCH:
        return _("per {axis}", axis=setting.search)
    return _("a {unit}", unit=(setting.family.workload.batch_unit or "samples").removesuffix("s"))


def _cells(answer: FitAnswer) -> list[Text]:
    setting, line = answer.setting, memory_line(answer.tries)
    return [
        " ".join(filter(None, [setting.framework, setting.version])),
        setting.precision,
        setting.layout + (" compile" if setting.compile else ""),
        setting.axis_labels,
        _gib(setting.cap or setting.memory),
        _("none") if answer.largest is None else str(answer.largest),
        _gib(_peak(answer)),
        _gib(line.fixed if line else None),
        f"{line.per_image / MIB:.2f} MiB" if line else number.MISSING,
        _gib(line.residual if line else None),
    ]


def _section(answer: FitAnswer) -> Section:
    setting = answer.setting
    title = _("{setting} on {device}", setting=str(setting), device=setting.device_name)
    if setting.cap:
        title = _("{setting}, capped at {memory}", setting=title, memory=_gib(setting.cap))
    rows: list[list[Text]] = [
        [
            str(each.batch),
            FITS if each.fits else REFUSED if each.refused else NO_MEMORY,
            _gib(each.peak),
            f"{each.seconds:.0f}",
            each.detail,
        ]
        for each in answer.tries
    ]
    header = (setting.search, _("outcome"), _("peak"), _("seconds"), "")
    told: list[Block] = [Table(header, rows, frozenset({0, 2, 3})), Items(list(_sentences(answer)))]
    return Section(title, told)


def _sentences(answer: FitAnswer) -> Iterator[Message]:
    line, failed = memory_line(answer.tries), first_failure(answer.tries, answer.step)
    search = answer.setting.search
    if refused := [each for each in answer.tries if each.batch == failed and each.refused]:
        detail = refused[0].detail
        yield _("The program refuses {search} {value}: {detail}", search=search, value=failed, detail=detail)
    elif failed is not None and line is not None:
        memory = _gib(line.at(failed))
        yield _("By the line through the peaks, {value} would take {memory}.", value=failed, memory=memory)
    elif failed is None:
        yield _("No larger {search} was tried: --most is {most}.", search=search, most=answer.most)
    if foretold := memory_prediction(answer.tries):
        figures = {
            "memory": _gib(foretold.predicted),
            "value": foretold.batch,
            "error": f"{100 * foretold.error:+.1f}",
        }
        if search == BATCH:
            yield _("The smaller batches foretell {memory} at {value}: off by {error} %.", **figures)
        else:
            yield _("The smaller values foretell {memory} at {value}: off by {error} %.", **figures)
    if answer.remembered:
        yield _("Remembered from {date}; --again measures anew.", date=answer.measured)
    for each in _published(answer):
        yield _("Published: {claim}", claim=_claim(each))


def _claim(one: Published) -> Message:
    told = _(
        "{batch} in {framework} on {device}", batch=one.batch, framework=one.framework, device=one.device
    )
    if one.largest:
        told = _("{batch}, the most that fits", batch=told)
    if one.memory_mb:
        told = _("{batch}, {memory} MiB in use", batch=told, memory=f"{one.memory_mb:,.0f}")
    return _("{batch} ({title}, {page})", batch=told, title=one.title, page=one.page)


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
    return number.MISSING if value is None else f"{value / GIB:.2f} GiB"
