"""The end of a log, as plain text."""

from __future__ import annotations

from trainmark.launch.outcome import TAIL_BYTES, tail


def test_of_a_long_log_only_the_end_is_read(tmp_path):
    log = tmp_path / "rank0.log"
    log.write_text("x" * TAIL_BYTES + "the end\n")
    assert tail(log) == "x" * (TAIL_BYTES - 8) + "the end\n"


def test_what_a_terminal_would_obey_is_taken_out(tmp_path):
    log = tmp_path / "rank0.log"
    log.write_bytes(b"\x1b[31mred\x1b[0m\x07 and\rover\n")
    assert tail(log) == "red and\nover\n"


def test_a_log_that_is_not_there_has_no_end(tmp_path):
    assert tail(tmp_path / "rank0.log") == ""
