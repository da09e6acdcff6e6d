"""Shares of what a device could do, and what a result costs in money and energy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trainmark.measure.cost import cost_of
from trainmark.measure.figure import Result
from trainmark.measure.key import Key
from trainmark.measure.utilisation import HALF, ReferenceRate, reference_rate_of, share
from trainmark.pages import label, number
from trainmark.pages.run.results import meter
from trainmark.store.report import RunReport
from trainmark.view.blocks import Section, Sentence, Span, Table, Text, without
from trainmark.view.message import Message, _, joined

GIGA = 1e9
ARITHMETIC_NOTE = _(
    "MFU counts every matrix product of the model once, and causal attention as it is computed; HFU adds what"
    " activation recomputation computes again. The peak is that of a large matrix product, measured in the"
    " run where the ranks did."
)
CONVENTIONS_NOTE = _(
    "The same throughput and peak with the FLOP that each code counts; nanoGPT divides by 312 TFLOP/s, an"
    " A100's, on every device."
)
Column = Callable[[Result], str]


def known_columns(columns: dict[Text, Column], results: Sequence[Result]) -> dict[Text, Column]:
    """Return the columns in which some result has a figure."""
    return {
        name: column
        for name, column in columns.items()
        if any(column(result) != number.MISSING for result in results)
    }


def reference_section(report: RunReport) -> Section | None:
    """What each result reaches of the reference rate of its device, its speed of light."""
    names = label.distinguishing(result.key for result in report.results)
    compared = [
        (result, reference, reached)
        for result in report.results
        if (reference := reference_rate_of(result, report.reference_rates))
        and (reached := share(result, report.reference_rates)) is not None
    ]
    if not compared:
        return None
    compared.sort(key=lambda row: (row[0].key.devices, row[0].key.batch_per_device or 0, -row[2]))
    unit = compared[0][0].unit
    optional: dict[Text, Column] = {
        "MFU": lambda result: number.percent(result.utilisation.value if result.utilisation else None),
        _("memory bandwidth"): lambda result: number.percent(result.memory_share),
        Span(f"{unit}/J", "as-is"): lambda result: number.significant(result.samples_per_joule, 3),
    }
    columns = known_columns(optional, [result for result, _reference, _reached in compared])
    rows: list[list[Text]] = [
        [
            f"{label.series(result.key, names)} {result.key.topology}",
            number.throughput(result.throughput / result.key.devices),
            [Span(number.percent(reached), "main"), meter(reached)],
            *(column(result) for column in columns.values()),
        ]
        for result, _reference, reached in compared
    ]
    rate = Span(_("{unit} a device", unit=label.rate_unit(unit)), "as-is")
    header = [_("case"), rate, _("share of light"), *columns]
    used = dict.fromkeys((reference, result.unit) for result, reference, _reached in compared)
    references = joined([_reference(*each) for each in used], _("; "))
    note = _(
        "A share of 100 % is what one device does with our own fused training step: {references}.",
        references=references,
    )
    table = Table(header, rows, frozenset(range(1, len(header))), notes=[note], sortable=False)
    return Section(_("Speed of light"), [table])


def _reference(reference: ReferenceRate, unit: str) -> Message:
    return _(
        "{rate} {unit} on {device} ({workload}, {axes}, {precision}, batch {batch}, Trainmark {version},"
        " {date})",
        rate=number.throughput(reference.rate),
        unit=label.rate_unit(unit),
        device=reference.device,
        workload=reference.workload,
        axes=label.axes(reference.workload, reference.axes),
        precision=_("amp or bf16") if reference.precision == HALF else reference.precision,
        batch=reference.batch,
        version=reference.version,
        date=reference.taken.partition("T")[0],
    )


def arithmetic_section(results: Sequence[Result]) -> Section | None:
    """MFU, HFU, memory and energy, and other codes' MFU, where the workload counts FLOP by their conventions.

    Elsewhere MFU is one number and stands among the results.
    """
    counted = [(case, result) for case, result in label.cases(results) if result.conventions]
    if not counted:
        return None
    note = without("terminal", Sentence(ARITHMETIC_NOTE, "note"))
    title = _("What other codes would call the MFU of this run")
    conventions = Section(title, [_conventions_table(counted)], look="as-written")
    return Section(_("Arithmetic, memory and energy"), [_figures_table(counted), note, conventions])


def _figures_table(counted: Sequence[tuple[str, Result]]) -> Table:
    units = "/".join(dict.fromkeys(_one(result.unit) for _case, result in counted))
    figures: dict[Text, Column] = {
        "MFU": lambda result: number.percent(result.utilisation.value if result.utilisation else None),
        "HFU": lambda result: number.percent(
            result.hardware_utilisation.value if result.hardware_utilisation else None
        ),
        _("of the memory roofline"): lambda result: number.percent(result.memory_share),
        _("memory (GiB)"): lambda result: number.gibibytes(result.memory_bytes),
        _("energy a {unit}", unit=units): lambda result: number.joules(result.joules_per_sample),
    }
    columns = known_columns(figures, [result for _case, result in counted])
    rows = [[case, *(column(result) for column in columns.values())] for case, result in counted]
    return Table([_("case"), *columns], rows, frozenset(range(1, len(columns) + 1)))


def _conventions_table(counted: Sequence[tuple[str, Result]]) -> Table:
    """Return the MFU of each result by each convention, below the GFLOP of a sample that it follows from.

    Ours comes first. Results that share their counts share the row of GFLOP.
    """
    names = list(dict.fromkeys(each.name for _case, result in counted for each in result.conventions))
    alike: dict[tuple[str, ...], list[tuple[str, Result]]] = {}
    for case, result in counted:
        alike.setdefault(tuple(_gigaflops(result, names)), []).append((case, result))
    keys = [[result.key for _case, result in members] for members in alike.values()]
    rows: list[list[Text]] = []
    for gigaflops, members in alike.items():
        first = members[0][1]
        title = _("GFLOP a {unit}", unit=_one(first.unit))
        rows.append([[title, label.extras(first.key, _telling_axes(keys))], *gigaflops])
        rows += [[case, *_mfus(result, names)] for case, result in members]
    header = [_("case"), _("exact"), *names]
    right = frozenset(range(1, len(header)))
    return Table(header, rows, right, notes=[CONVENTIONS_NOTE], sortable=False)


def _telling_axes(groups: Sequence[Sequence[Key]]) -> list[str]:
    """Return the workload and the axes that are the same in each of these groups and tell them apart."""
    names = ("workload", *dict.fromkeys(name for keys in groups for key in keys for name, _value in key.axes))
    values = {name: [{key.value(name) for key in keys} for keys in groups] for name in names}
    return [
        name
        for name, sets in values.items()
        if all(len(own) == 1 for own in sets) and len(set().union(*sets)) > 1
    ]


def _gigaflops(result: Result, names: Sequence[str]) -> list[str]:
    by_name = {convention.name: convention.utilisation.flops_per_sample for convention in result.conventions}
    own = result.utilisation.flops_per_sample if result.utilisation else None
    counts = (own, *(by_name.get(name) for name in names))
    return [number.significant(None if flops is None else flops / GIGA) for flops in counts]


def _mfus(result: Result, names: Sequence[str]) -> list[str]:
    by_name = {convention.name: convention.utilisation.value for convention in result.conventions}
    own = result.utilisation.value if result.utilisation else None
    return [number.percent(mfu) for mfu in (own, *(by_name.get(name) for name in names))]


def _one(unit: str) -> str:
    """Return the singular of a unit: `token` of `tokens`."""
    return unit.removesuffix("s")


def cost_section(report: RunReport) -> Section | None:
    """What each result costs at the given price, and the energy it takes; None without a price."""
    if report.price is None or not report.results:
        return None
    named = {
        "per_million": _("cost per million samples"),
        "to_target": _("cost to the target"),
        "kwh_per_million": _("kWh per million samples"),
    }
    costs = [(case, cost_of(result, report.price)) for case, result in label.cases(report.results)]
    names = [name for name in named if any(getattr(cost, name) is not None for _case, cost in costs)]
    rows = [[case, *(number.significant(getattr(cost, name), 3) for name in names)] for case, cost in costs]
    note = _(
        "At {price}, for the hours of steady training alone: start-up, evaluation and idle time are left out"
        " but for the cost to the target, which counts all of it. Energy is that of the devices, and of the"
        " processors where those report it.",
        price=report.price,
    )
    header = [_("case"), *(named[name] for name in names)]
    right = frozenset(range(1, len(header)))
    return Section(_("Cost"), [Table(header, rows, right, notes=[note])])
