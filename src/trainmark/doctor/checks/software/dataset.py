"""Whether the dataset lies at the same path with the same contents on every node."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from trainmark.doctor.examined import Examined, most_common
from trainmark.doctor.facts import Dataset
from trainmark.doctor.finding import About, Check, Finding, bad, ok
from trainmark.doctor.words import size

Sums = tuple[str | None, str | None]


def find(examined: Examined) -> Iterator[Finding]:
    datasets = {name: facts.dataset for name, facts in examined.facts() if facts.dataset}
    usual = most_common({name: _sums(own) for name, own in datasets.items() if own.files})
    source = next((name for name, own in datasets.items() if own.files and _sums(own) == usual), None)
    for node, own in datasets.items():
        path = shlex.quote(own.path)
        copy = f"from {source}: `rsync -a --delete {path}/ {shlex.quote(node)}:{path}/`"
        fix = copy if source and source != node else f"put it there, or name its place: --dataset, not {path}"
        if not own.exists:
            yield bad(node, "missing", f"there is nothing at {own.path}", fix)
        elif own.trouble:
            yield bad(node, "not readable", own.trouble, f"on {node}: `ls -lR {path} | head`; let it be read")
        elif not own.files:
            yield bad(node, "empty", f"no file lies in {own.path}", fix)
        elif _sums(own) != usual:
            yield bad(node, _value(own), f"{own.path} is not what the others have: {_value(own)}", fix)
        else:
            yield ok(node, _value(own))


def _sums(own: Dataset) -> Sums:
    return own.names, own.contents


def _value(own: Dataset) -> str:
    checksum = own.contents or own.names or ""
    return f"{own.files:,} file{'s' * (own.files != 1)}, {size(own.bytes)}, {checksum[:8]}"


CHECK = Check("dataset", About.DATA, find)
