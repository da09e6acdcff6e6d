"""What was measured, and on what, in one line: `ResNet-50 at 224², PyTorch 2.13 AMP, 8 × H200`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trainmark.base.text import natural_key
from trainmark.logs.ledger.entry import short_name
from trainmark.measure.figure import Result
from trainmark.measure.key import Key
from trainmark.pages import label
from trainmark.report.format.words import Lang, words

# Up to so many names of a kind are written out; of more, their number.
MOST_NAMES = 3


def subject(results: Sequence[Result], lang: Lang = "en") -> str:
    """Return the line from what the keys and the workloads' declarations say; empty without a result."""
    keys = [result.key for result in results]
    if not keys:
        return ""
    t = words(lang)
    parts = (_workload(keys, t), _framework(keys, t), _batch(keys, t), _devices(keys, t))
    return t["subject_join"].join(filter(None, parts))


def _workload(keys: Sequence[Key], t: dict[str, str]) -> str:
    title = _named(_distinct(label.workload_title(key.workload) for key in keys), "workload", t)
    if len({key.workload for key in keys}) > 1:
        return title
    names = dict.fromkeys(name for key in keys for name, _ in key.axes)
    axes = (_axis(keys[0].workload, name, keys) for name in names)
    shown = " ".join(filter(None, axes))
    return t["subject_at"].format(title=title, axes=shown) if shown else title


def _axis(workload: str, name: str, keys: Sequence[Key]) -> str:
    values = sorted({key.value(name) for key in keys if key.value(name) is not None}, key=_numerically)
    texts = [label.axes(workload, ((name, value),)) for value in values]
    if not all(texts):
        return ""  # a quiet axis, part of them at its default: the names of the cases tell
    return "/".join(texts) if len(texts) <= MOST_NAMES else f"{texts[0]}–{texts[-1]}"


def _framework(keys: Sequence[Key], t: dict[str, str]) -> str:
    versions = _distinct(label.framework_title(key) for key in keys if key.framework)
    precisions = _distinct(key.precision.upper() for key in keys if key.precision)
    frameworks = _named(versions, "framework", t)
    if len(precisions) > MOST_NAMES:
        return t["subject_join"].join(filter(None, (frameworks, _named(precisions, "precision", t))))
    return " ".join(filter(None, (frameworks, "/".join(precisions))))


def _batch(keys: Sequence[Key], t: dict[str, str]) -> str:
    batches = {key.batch_per_device for key in keys if key.batch_per_device is not None}
    if not batches:
        return ""
    several = any(key.devices > 1 for key in keys)
    return t["subject_batch_per_device" if several else "subject_batch"].format(batch=_span(batches))


def _devices(keys: Sequence[Key], t: dict[str, str]) -> str:
    nodes = {key.nodes for key in keys}
    device = _named(_distinct(short_name(key.device) for key in keys if key.device), "device", t)
    count = f"{_span({key.devices for key in keys})} × {device}".removesuffix(" × ")
    threads = {key.threads for key in keys if key.threads is not None}
    parts = (
        t["subject_nodes"].format(nodes=_span(nodes)) if max(nodes) > 1 else "",
        count if device or max(key.devices for key in keys) > 1 else "",
        t["subject_thread" if threads == {1} else "subject_threads"].format(threads=_span(threads))
        if threads
        else "",
    )
    return t["subject_join"].join(filter(None, parts))


def _named(names: Sequence[str], what: str, t: dict[str, str]) -> str:
    if len(names) <= MOST_NAMES:
        return t["list_join"].join(names)
    return t["subject_several"].format(count=len(names), what=t[f"subject_{what}"])


def _distinct(names: Iterable[str]) -> list[str]:
    return sorted(set(names), key=natural_key)


def _span(counts: set[int]) -> str:
    """`8`, `1–8`."""
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def _numerically(value: int | str) -> tuple[tuple[int, str], ...]:
    return natural_key(str(value))
