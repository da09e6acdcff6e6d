"""Tables fit the terminal; what goes into a pipe or a file is whole."""

from __future__ import annotations

import fcntl
import os
import struct
import termios

import pytest

from trainmark.cli.terminal import terminal_width

QUERY = ("query", f"SELECT '{'some words ' * 9}' AS remark, 123456789012 AS count")


def test_the_width_is_that_of_the_terminal(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    other_end, end = os.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 90, 0, 0))
    with os.fdopen(end, "w") as stream, os.fdopen(other_end), monkeypatch.context() as patch:
        patch.setattr("sys.stdout", stream)
        patch.setattr("sys.__stdout__", stream)
        assert terminal_width() == 90


def test_a_pipe_has_no_width_and_nothing_is_cut(trainmark, runs, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert "some words " * 8 in trainmark(*QUERY).out


def test_columns_sets_the_width_of_a_table(trainmark, runs, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    assert trainmark(*QUERY).out.splitlines() == [
        f"{'remark':<23}  {'count':>15}",
        "some words some words…   123,456,789,012",
    ]


@pytest.mark.parametrize("value", ["", "wide", "-3", "0"])
def test_columns_that_are_no_number_of_columns_set_no_width(monkeypatch, capsys, value):
    monkeypatch.setenv("COLUMNS", value)
    assert terminal_width() is None
