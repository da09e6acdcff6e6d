"""A trial of a command whose log is in a known format."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainmark.events import RunStart, Scope, Step
from trainmark.logs.trials.auto import reader, reader_names
from trainmark.logs.trials.output import Output, ReaderError

LINE = b"train: epoch 0, iter %d, loss: 6.5, top_1: 0.1, top_k: 0.2, samples/s: 288.088%s\n"


def printed(folder: Path, lines: list[tuple[float, bytes]]) -> Output:
    (folder / "logs").mkdir()
    size, arrivals = 0, ""
    for seconds, text in lines:
        size += len(text)
        arrivals += f"{size} {seconds:.6f}\n"
    (folder / "logs" / "rank0.log").write_bytes(b"".join(text for _, text in lines))
    (folder / "logs" / "rank0.arrivals").write_text(arrivals)
    return Output(folder, world_size=1, batch_per_device=32, unit="images")


def test_every_format_is_the_name_of_a_reader():
    assert "oneflow-cnns" in reader_names() and "probe" in reader_names()


def test_lines_are_timed_by_their_arrival_and_count_for_the_steps_between_them(tmp_path):
    output = printed(tmp_path, [(10.0 + n, LINE % (20 * n, b"")) for n in range(1, 4)])
    start, *steps = reader("oneflow-cnns")(output)
    source = {"source": "the log, read as OneFlow-Benchmark Classification/cnns"}
    assert start == RunStart(0, 1, 11.0, None, "images", Scope.RANK, source)
    assert [(s.mono, s.samples, s.loss) for s in steps if isinstance(s, Step)] == [
        (12.0, 640, 6.5),
        (13.0, 640, 6.5),
    ]


def test_times_that_the_log_prints_finely_are_preferred(tmp_path):
    output = printed(tmp_path, [(50.0, LINE % (20 * n, b" 1600000000.%d5" % n)) for n in range(1, 4)])
    _, *steps, _ = reader("oneflow-cnns")(output)
    assert [step.mono for step in steps] == pytest.approx([1600000000.25, 1600000000.35])


def test_a_log_without_progress_is_said_to_have_none(tmp_path):
    with pytest.raises(ReaderError, match="no line of rank 0"):
        list(reader("oneflow-cnns")(printed(tmp_path, [(1.0, b"hello\n")])))
