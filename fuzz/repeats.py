"""A megabyte of one short text over and over, through every format: no pattern may take quadratic time."""

from __future__ import annotations

import random
from contextlib import suppress

from harness import Case, fuzz

from trainmark.logs.input import Cleaning, clean_blocks
from trainmark.logs.read import read_runs
from trainmark.logs.recognition import UnrecognizedError, formats, recognize
from trainmark.measure.log_figure import LogFacts, logged_figure

FORMATS = list(formats().values())
MARKS = [bytes([byte]) for byte in b"\n \t\r\0\xff01xe-=*|[]{}(),.:/%\"'"]
WORDS = rb"""
    epoch Epoch step iter loss lr train rank speed it/s ms samples/s tokens throughput/ train/time nan INFO
    1.5 1/2 00:01 2024-05-14 08:02:33,385 :::MLLOG DLL
""".split()
PIECES = [*MARKS, *WORDS]
BYTES = 1 << 20


def make(rng: random.Random, number: int) -> Case:
    format = FORMATS[number % len(FORMATS)]
    unit = b"".join(rng.choice(PIECES) for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5))))
    head = b"".join(rng.choice(PIECES) for _ in range(rng.randrange(3)))
    return Case(f"{format.name}: {head!r}, then {unit!r}", lambda: check(format.name, head, unit))


def check(name: str, head: bytes, unit: bytes) -> None:
    text = head + unit * (BYTES // len(unit))
    blocks = list(clean_blocks([text], Cleaning()))
    with suppress(UnrecognizedError):
        recognize(blocks, "repeats")
    for run in read_runs(formats()[name], iter(blocks), "repeats"):
        logged_figure(run.columns(), LogFacts(**run.facts()))


if __name__ == "__main__":
    fuzz("repeats", 5000, make)
