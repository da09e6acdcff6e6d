"""Find the format of a log: recognized by its content, with how sure that is, or named by the user."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from trainmark.base.errors import UserError, nearest
from trainmark.logs.format import Format
from trainmark.logs.format_file import FOLDER, custom_format, our_format

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
def format_names() -> tuple[str, ...]:
    """The names of our formats: a file each."""
    return tuple(sorted(path.name.removesuffix(".yaml") for path in FOLDER.glob("[!_]*.yaml")))


@cache
def formats() -> dict[str, Format]:
    """Every format of ours by its name."""
    return {name: our_format(name) for name in format_names()}


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
    """The format of a user's file, or ours of this name."""
    if name.endswith((".yaml", ".yml")):
        return custom_format(Path(name))
    if name not in format_names():
        raise UserError(f"there is no format '{name}'{nearest(name, format_names())}")
    return our_format(name)
