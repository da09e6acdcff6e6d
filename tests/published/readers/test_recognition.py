"""Telling the format of a log from its content."""

from __future__ import annotations

import pytest
from trainer_logs import LOGS

from trainmark.logs import recognition as module
from trainmark.logs.format import Format
from trainmark.logs.input import clean_blocks
from trainmark.logs.recognition import UnrecognizedError, formats, recognize

LINE = b"train: epoch 0, iter %d, loss: 6.5, top_1: 0.1, top_k: 0.2, samples/s: 288.088\n"


def lines(count: int) -> bytes:
    return b"".join(LINE % number for number in range(count))


def made_up(name: str, sign: str) -> Format:
    return Format(name, title=name, framework=None, patterns={"sign": sign, "step": "(?P<step>x)"})


@pytest.fixture
def two_formats(monkeypatch):
    both = {"apple": made_up("apple", "apple"), "pear": made_up("pear", "pear")}
    monkeypatch.setattr(module, "formats", lambda: both)


def test_every_file_of_the_folder_gives_formats_by_their_own_names():
    assert "oneflow-cnns" in formats() and "trainmark-events" in formats()
    assert all(name == format.name for name, format in formats().items())


def test_a_log_is_recognised_and_its_blocks_are_all_given_back():
    blocks = [b"starting\n" * 10, lines(20), b"the end\n"]
    recognition, again = recognize(iter(blocks), "x.log")
    assert (recognition.format.name, recognition.matches, recognition.confidence) == ("oneflow-cnns", 20, 1.0)
    assert list(again) == blocks


def test_a_few_lines_are_recognised_with_less_confidence():
    recognition, _ = recognize([lines(3)], "x.log")
    assert recognition.confidence == pytest.approx(0.3)


def test_progress_that_begins_after_megabytes_of_noise_is_still_found():
    noise = b"Registering operation kernel for device\n" * 100_000
    recognition, _ = recognize([noise, noise, lines(20)], "x.log")
    assert recognition.format.name == "oneflow-cnns"


def test_what_no_format_fits_is_refused_with_the_formats_there_are():
    with pytest.raises(UnrecognizedError, match=r"x\.log: no known format.*--formats"):
        recognize([b"hello\n"], "x.log")


def test_what_two_formats_fit_is_refused_with_both(two_formats):
    with pytest.raises(UnrecognizedError, match=r"could be any of apple \(3 lines\), pear \(2 lines\)"):
        recognize([b"apple pear\napple pear\napple\n"], "x.log")


def test_a_line_quoted_from_another_format_is_no_second_candidate(two_formats):
    recognition, _ = recognize([b"apple\n" * 100 + b"pear\n"], "x.log")
    assert recognition.format.name == "apple"
    assert recognition.confidence == pytest.approx(100 / 101)


def test_a_file_without_lines_is_given_up_and_not_read_to_its_end():
    taken = []

    def chunks():
        while True:
            taken.append(1)
            yield b"\0" * 4096

    with pytest.raises(UnrecognizedError):
        recognize(clean_blocks(chunks()), "x.log")
    assert len(taken) < 100


def test_a_sign_that_stands_once_at_the_top_is_enough():
    recognition, _ = recognize([LOGS["lightning-csv"](0.5).text.encode()], "metrics.csv")
    assert (recognition.format.name, recognition.matches, recognition.confidence) == ("lightning-csv", 1, 1.0)
