"""How many devices a name speaks of: `1n8g`, `4机32卡`, `8 GPUs`, `8x V100`."""

from __future__ import annotations

import re

from trainmark.published.audit.report.number import LONGEST_CELL, normal

SHORT = re.compile(r"(?<![a-z0-9])(\d{1,4})n(\d{1,3})g(?![a-z0-9])", re.I | re.A)
CARDS = re.compile(
    r"(?<![\d.])(\d{1,5}) ?(?:卡|张卡|(?:gpu|card|device|npu)s?\b|[x×*] ?(?:nvidia |tesla )?[vahpt]\d)",
    re.I | re.A,
)
CARDS_AFTER = re.compile(
    r"(?:gpu|v100|a100|h100|t4|p100)[\w-]{0,12} ?[x×*] ?(\d{1,4})(?!\d)"
    r"|(?:gpu|npu|card|卡)s? ?[=:] ?(\d{1,5})(?!\d)",
    re.I | re.A,
)
MACHINES = re.compile(r"(?<![\d.])(\d{1,4}) ?(?:机|台|nodes?\b)", re.I | re.A)


def devices_in(text: str) -> int | None:
    """The devices that a cell, a file's folder or a heading names, or None."""
    if len(text) > LONGEST_CELL:
        return None
    plain = normal(text)
    if short := SHORT.search(plain):
        return int(short[1]) * int(short[2])
    if cards := CARDS.search(plain) or CARDS_AFTER.search(plain):
        return int(next(filter(None, cards.groups())))
    return 1 if re.match(r"单机单卡|单卡", plain) else None


def nodes_in(text: str) -> int | None:
    if len(text) > LONGEST_CELL:
        return None
    plain = normal(text)
    match = SHORT.search(plain) or MACHINES.search(plain)
    return int(match[1]) if match else None
