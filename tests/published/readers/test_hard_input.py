"""No input crashes a reader, hangs it or makes it invent: every format, on bytes of every kind."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trainmark.logs.input import clean_blocks
from trainmark.logs.read import read_runs
from trainmark.logs.recognition import UnrecognizedError, formats, recognize
from trainmark.measure.log_figure import LogFacts, logged_figure

FORMATS = list(formats().values())
FIXTURES = Path(__file__).parent
FAST = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
# Pieces of which logs are made, so that chance comes near to real lines.
WORDS = re.findall(rb"[A-Za-z_:]{3,}", b" ".join(format.step.pattern for format in FORMATS))
PIECES = [
    *sorted(set(WORDS)),
    b" ",
    b": ",
    b", ",
    b"\n",
    b"\r",
    b"[1,3]<stderr>:",
    b"\x1b[32m",
    b"\0",
    b"nan",
    b"1e999",
    b"-",
    b"0",
    b"12345678901234567890",
    b"3.14",
    b"2020-02-31 25:61:61.5",
    b"2020-12-16 11:32:20.234886",
    b"DLL ",
    b"epoch",
    b"(",
    b"{",
    b"\xff\xfe",
    "步".encode(),
]
near_logs = st.lists(st.sampled_from(PIECES), max_size=60).map(b"".join)
any_bytes = st.one_of(st.binary(max_size=400), near_logs)


def valid_lines() -> list[bytes]:
    """Every line of text in the tests of the formats: real shapes to break."""
    files = (path for path in FIXTURES.rglob("*") if path.suffix in (".log", ".txt", ".jsonl", ".json"))
    return [line for path in files for line in path.read_bytes().splitlines(keepends=True)][:2000]


def read(format, data: bytes) -> None:
    for run in read_runs(format, clean_blocks([data]), "x.log"):
        figure = logged_figure(run.columns(), LogFacts(**run.facts()))
        assert figure.throughput is None or figure.throughput >= 0


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
@FAST
@given(data=any_bytes)
def test_no_bytes_crash_a_format(format, data):
    read(format, data)


@FAST
@given(data=any_bytes)
def test_recognition_answers_or_refuses(data):
    try:
        recognition, blocks = recognize(clean_blocks([data]), "x.log")
    except UnrecognizedError:
        return
    assert recognition.matches > 0
    list(blocks)


@pytest.mark.skipif(not valid_lines(), reason="the formats keep their lines elsewhere")
@FAST
@given(data=st.data())
def test_no_broken_line_crashes_any_format(data):
    line = data.draw(st.sampled_from(valid_lines()))
    cut, flip = data.draw(st.integers(0, len(line))), data.draw(st.integers(0, max(len(line) - 1, 0)))
    broken = bytearray(line[:cut] + data.draw(any_bytes) + line)
    broken[flip] = data.draw(st.integers(0, 255))
    for format in FORMATS:
        read(format, bytes(broken))


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
def test_a_long_line_of_a_formats_own_words_does_not_hang_it(format):
    for words in (
        WORDS,
        [b"loss: 1.0 "],
        [b"Epoch: 0 Iteration: 1  "],
        [b"1/2 ["],
        [b"{'loss': "],
        [b"step "],
    ):
        line = b" ".join(itertools.islice(itertools.cycle(words), 4000))[:20_000]
        read(format, line + b"\n")


def test_recognition_does_not_hang_on_one_byte_over_and_over():
    """In a process that can be ended: a pattern of quadratic time would take minutes."""
    program = (
        "from trainmark.logs.recognition import formats\n"
        "for byte in (b'1', b' ', b'-', b'[', b'\\n'):\n"
        "    for format in formats().values():\n"
        "        format.sign.search(byte * 300_000)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=100)
