"""Where a result stands among the published ones, in one line."""

from __future__ import annotations

from trainmark.logs.ledger.entry import LedgerEntry, device_family, names_of
from trainmark.logs.ledger.standing import LENGTH_AXIS, SHORT_UNITS, Standing
from trainmark.measure.key import Key
from trainmark.pages.facts import fact_name
from trainmark.view.message import Message, _, joined

LIST = _(", ")
# Names of the fields of a key where they stand beside theirs.
FIELDS = {
    "accumulate": _("accumulate"),
    "batch_per_device": _("batch"),
    "framework_version": _("version"),
    "length": _("length"),
    "loss_scale": _("loss scale"),
    "optimizer": _("optimizer"),
    "recompute": _("recompute"),
    "sharding": _("sharding"),
}


def standing_line(key: Key, standing: Standing | None) -> str:
    """`best published: 4,868.3 img/s (milabench-h200); this is 125 % of it; theirs: batch 256 …`.

    Empty for a user's own program, which nobody else can have published.
    """
    if key.framework is None:
        return ""
    if standing is None:
        return _("best published: nothing comparable ({why})", why=_why_none(key))
    return standing_text(standing)


def standing_text(standing: Standing) -> Message:
    figure, percent = _figure(standing.best, standing.per_device), f"{100 * standing.ratio:.0f}"
    parts = [_("best published: {figure}; this is {percent} % of it", figure=figure, percent=percent)]
    if standing.differences:
        differences = [
            _("{name} {theirs} (here {ours})", name=_name(each.field), theirs=each.theirs, ours=each.ours)
            for each in standing.differences
        ]
        parts.append(_("theirs: {differences}", differences=joined(differences, LIST)))
    if standing.unstated:
        parts.append(
            _("not stated on one side: {names}", names=joined(list(map(_name, standing.unstated)), LIST))
        )
    if standing.best.errata:
        parts.append(_("the source has errata"))
    if standing.ceiling:
        parts.append(_("most from one device: {figure}", figure=_figure(standing.ceiling, per_device=True)))
    return joined(parts, _("; "))


def _name(field: str) -> str:
    return FIELDS.get(field) or fact_name(field)


def _figure(entry: LedgerEntry, per_device: bool) -> Message:
    row = entry.row
    rate = f"{(row.per_device if per_device else row.throughput) or 0.0:,.1f} {SHORT_UNITS[row.unit]}"
    source = f"{entry.source}, {row.framework}"
    if not per_device:
        return _("{rate} ({source})", rate=rate, source=source)
    topology = row.topology or row.devices
    return _("{rate} a device of {topology} ({source})", rate=rate, topology=topology, source=source)


def _why_none(key: Key) -> Message:
    if not key.device:
        return _("the device is not known")
    workload = names_of(key)[0]
    if length := key.value(LENGTH_AXIS):
        workload = _("{name} ({axis} {value})", name=workload, axis=FIELDS[LENGTH_AXIS], value=length)
    return _(
        "no {workload} in {precision} on {device} in the ledger",
        workload=workload,
        precision=key.precision or _("unknown precision"),
        device=device_family(key.device),
    )
