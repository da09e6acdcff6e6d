"""A format by the name that a person gives: one of ours, or a YAML file of their own."""

from __future__ import annotations

import difflib
from pathlib import Path

from trainmark.errors import UserError
from trainmark.published.readers.format import Format
from trainmark.published.readers.recognise import formats


def named_format(name: str) -> Format:
    if name.endswith((".yaml", ".yml")):
        from trainmark.published.readers.own_format import own_format

        return own_format(Path(name))
    known = formats()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(known)}."
        raise UserError(f"there is no format '{name}'; {hint}")
    return known[name]
