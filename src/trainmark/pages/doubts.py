"""The names of doubts: their codes in English, of which every other language has its own."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark.measure.doubts import DoubtCode
from trainmark.view.message import Message, joined

KNOWN = {code.value: code.label for code in DoubtCode}


def doubt_name(code: str) -> str:
    """Return the name of a doubt; one that a newer version has made stays as it is."""
    return KNOWN.get(code, code)


def doubt_names(codes: Sequence[str]) -> Message:
    return joined(list(map(doubt_name, codes)), ", ")
