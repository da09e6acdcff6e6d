"""Trainers that people use today: recognised among all others, and read at the speed that was written."""

from __future__ import annotations

import pytest
from trainer_logs import LOGS, deepspeed, megatron

from trainmark.logs.input import clean_blocks
from trainmark.logs.read import read_runs
from trainmark.logs.recognition import formats, recognize
from trainmark.measure.log_figure import LogFacts, LoggedFigure, logged_figure

SECONDS = 0.5


def figure_of(text: str) -> tuple[str, LoggedFigure]:
    recognition, blocks = recognize(clean_blocks([text.encode()]), "log")
    (run,) = read_runs(recognition.format, filter(None, blocks), "log")
    return recognition.format.name, logged_figure(run.columns(), LogFacts(**run.facts()))


@pytest.mark.parametrize("name", LOGS)
def test_the_speed_that_was_written_is_the_speed_that_is_read(name):
    written = LOGS[name](SECONDS)
    format_name, figure = figure_of(written.text)
    assert format_name == name
    assert figure.unit == written.unit
    if written.samples is None:
        assert figure.throughput is None
        assert figure.steps_per_second == pytest.approx(written.steps, rel=0.02)
    else:
        assert figure.throughput == pytest.approx(written.samples, rel=0.02)
        assert not figure.doubts


@pytest.mark.parametrize("name", LOGS)
def test_no_other_format_has_its_sign(name):
    text = LOGS[name](SECONDS).text.encode()
    assert {other for other, format in formats().items() if format.sign.search(text)} == {name}


def test_a_library_gives_way_to_the_program_that_uses_it():
    ours, theirs = (make(SECONDS).text.splitlines() for make in (megatron, deepspeed))
    mixed = "\n".join(line for pair in zip(ours, [*theirs, ""], strict=True) for line in pair)
    assert figure_of(mixed)[0] == "megatron"


def test_ranks_that_all_print_a_devices_rate_do_not_add_devices():
    text = LOGS["torchtitan"](SECONDS).text
    head, *body = text.splitlines(keepends=True)
    each = "".join(line * 3 for line in body)
    assert figure_of(head + each)[1].throughput == pytest.approx(8 * 8192 / SECONDS, rel=0.02)
    assert figure_of(each)[1].throughput is None
