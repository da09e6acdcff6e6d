"""Find the format of a log: recognized by its content, with how sure that is, or named by the user."""

from __future__ import annotations

import difflib
import importlib
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from trainmark.base.errors import UserError
from trainmark.logs.format import Format

FORMATS_FOLDER = Path(__file__).with_name("formats")
# Signs stand on progress lines, which in some logs come only after long listings of operations.
HEAD_BYTES = 16 << 20
# No line end in so many chunks: this is no text.
MOST_EMPTY_BLOCKS = 64
FIRST_PIECE_BYTES, PIECE_BYTES = 64 << 10, 256 << 10
# Another format's sign on so small a share of the lines is a line quoted, not a second candidate.
STRAY_SHARE = 0.05
# With fewer signs than this, the log is recognised, but an excerpt of something else could look like it.
MATCHES_TO_BE_SURE = 10


class UnrecognizedError(UserError):
    """No format, or more than one, fits the content."""


@dataclass(frozen=True)
class Recognition:
    """The format, how many of its signs were seen, and the share of all signs that were its own."""

    format: Format
    matches: int
    confidence: float


@cache
def formats() -> dict[str, Format]:
    """Every format by its name: those that each file in the folder defines."""
    by_name: dict[str, Format] = {}
    for path in sorted(FORMATS_FOLDER.glob("[!_]*.py")):
        module = importlib.import_module(f"trainmark.logs.formats.{path.stem}")
        by_name.update({each.name: each for each in vars(module).values() if isinstance(each, Format)})
    return by_name


def recognize(blocks: Iterable[bytes], name: str) -> tuple[Recognition, Iterator[bytes]]:
    """The format of a log, and its blocks again, those looked at included."""
    head: list[bytes] = []
    rest = iter(blocks)
    counts: dict[str, int] = {}
    for block in rest:
        head.append(block)
        for piece in _pieces(block):
            for format in formats().values():
                if matches := sum(1 for _ in format.sign.finditer(piece)):
                    counts[format.name] = counts.get(format.name, 0) + matches
            if sum(counts.values()) >= MATCHES_TO_BE_SURE:
                break
        if counts or sum(map(len, head)) >= HEAD_BYTES or head.count(b"") >= MOST_EMPTY_BLOCKS:
            break
    return _decided(counts, name), itertools.chain(head, rest)


def _pieces(block: bytes) -> Iterator[bytes]:
    """The block in smaller ones: most logs show what they are at once, and every sign is sought in each."""
    begin, length = 0, FIRST_PIECE_BYTES
    while begin < len(block):
        end = block.find(b"\n", begin + length) + 1 or len(block)
        yield block[begin:end]
        begin, length = end, PIECE_BYTES


def _decided(counts: dict[str, int], name: str) -> Recognition:
    if not counts:
        raise UnrecognizedError(
            f"{name}: no known format is recognised; `trainmark read --formats` lists them."
        )
    ranked = sorted(_preceding(counts).items(), key=lambda item: -item[1])
    best, matches = ranked[0]
    rivals = [other for other, count in ranked[1:] if count > STRAY_SHARE * matches]
    if rivals:
        candidates = ", ".join(f"{other} ({counts[other]} lines)" for other in (best, *rivals))
        raise UnrecognizedError(f"{name}: it could be any of {candidates}; say which with --format.")
    share = matches / sum(count for _, count in ranked)
    format = formats()[best]
    enough = 1 if format.sign_once else MATCHES_TO_BE_SURE
    return Recognition(format, matches, share * min(1.0, matches / enough))


def _preceding(counts: dict[str, int]) -> dict[str, int]:
    """The formats of the highest precedence that is seen; one above the usual must be sure of itself."""
    known = formats()
    sure = [
        known[name].precedence
        for name, count in counts.items()
        if known[name].precedence <= 0 or count >= MATCHES_TO_BE_SURE
    ]
    highest = max(sure, default=1)
    return {name: count for name, count in counts.items() if known[name].precedence == highest}


def named_format(name: str) -> Format:
    if name.endswith((".yaml", ".yml")):
        from trainmark.logs.custom_format import custom_format

        return custom_format(Path(name))
    known = formats()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(known)}."
        raise UserError(f"there is no format '{name}'; {hint}")
    return known[name]
