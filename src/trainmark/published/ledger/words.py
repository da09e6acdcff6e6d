"""A standing as the one line that stands beside a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainmark.measure.key import Key
from trainmark.published.ledger.device import family
from trainmark.published.ledger.entry import Entry
from trainmark.published.ledger.names import names_of
from trainmark.published.ledger.standing import LENGTH, Standing, standing

SHORT_UNITS = {"images/s": "img/s", "sequences/s": "seq/s", "samples/s": "samples/s", "tokens/s": "tok/s"}
NAMES = {
    "framework_version": "version",
    "batch_per_device": "batch",
    "loss_scale": "loss scale",
}
PHRASES = {
    "best": "best published: {figure}; this is {percent} % of it",
    "none": "best published: nothing comparable ({why})",
    "theirs": "theirs: {differences}",
    "difference": "{name} {theirs} (here {ours})",
    "unstated": "not stated on one side: {names}",
    "errata": "the source has errata",
    "ceiling": "most from one device: {figure}",
    "figure": "{rate} ({source})",
    "device_figure": "{rate} a device of {topology} ({source})",
    "no_device": "the device is not known",
    "no_entry": "no {workload} in {precision} on {device} in the ledger",
    "unknown_precision": "unknown precision",
    "join": "; ",
    "list_join": ", ",
}


@dataclass(frozen=True)
class StandingWords:
    """The phrases and the names of fields in one language."""

    phrases: Mapping[str, str]
    names: Mapping[str, str]

    def name(self, field: str) -> str:
        return self.names.get(field, field.replace("_", " "))


ENGLISH = StandingWords(PHRASES, NAMES)


def best_published(key: Key, throughput: float, entries: Sequence[Entry], unit: str = "images/s") -> str:
    """`best published: 4,868.3 img/s (milabench-h200); this is 125 % of it; theirs: batch 256 …`.

    Empty for a user's own program, which nobody else can have published.
    """
    return standing_line(key, standing(key, throughput, entries, unit))


def standing_line(key: Key, comparison: Standing | None, words: StandingWords = ENGLISH) -> str:
    if key.framework is None:
        return ""
    if comparison:
        return in_words(comparison, words)
    return words.phrases["none"].format(why=_why(key, words))


def in_words(comparison: Standing, words: StandingWords = ENGLISH) -> str:
    phrases = words.phrases
    figure = _figure(comparison.best, comparison.per_device, words)
    parts = [phrases["best"].format(figure=figure, percent=f"{100 * comparison.ratio:.0f}")]
    if comparison.differences:
        differences = (
            phrases["difference"].format(name=words.name(each.field), theirs=each.theirs, ours=each.ours)
            for each in comparison.differences
        )
        parts.append(phrases["theirs"].format(differences=phrases["list_join"].join(differences)))
    if comparison.unstated:
        names = phrases["list_join"].join(map(words.name, comparison.unstated))
        parts.append(phrases["unstated"].format(names=names))
    if comparison.best.errata:
        parts.append(phrases["errata"])
    if comparison.ceiling:
        ceiling = _figure(comparison.ceiling, per_device=True, words=words)
        parts.append(phrases["ceiling"].format(figure=ceiling))
    return phrases["join"].join(parts)


def _figure(entry: Entry, per_device: bool, words: StandingWords) -> str:
    row = entry.row
    value = (row.per_device if per_device else row.throughput) or 0.0
    return words.phrases["device_figure" if per_device else "figure"].format(
        rate=f"{value:,.1f} {SHORT_UNITS[row.unit]}",
        topology=row.topology or row.devices,
        source=f"{entry.source}, {row.framework}",
    )


def _why(key: Key, words: StandingWords) -> str:
    if not key.device:
        return words.phrases["no_device"]
    precision = key.precision or words.phrases["unknown_precision"]
    workload = names_of(key)[0]
    if length := key.value(LENGTH):
        workload = f"{workload} ({words.name(LENGTH)} {length})"
    return words.phrases["no_entry"].format(workload=workload, precision=precision, device=family(key.device))
