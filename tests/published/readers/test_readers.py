"""From what a program printed or emitted to events."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainmark.events import RunEnd, RunStart, Scope, Step, stream
from trainmark.logs.trials import pattern, probe
from trainmark.logs.trials.auto import reader, reader_names
from trainmark.logs.trials.output import Output, ReaderError
from trainmark.measure.trace import trace_of

Chunks = list[tuple[float, bytes]]


def printed(folder: Path, *ranks: Chunks) -> None:
    """Logs and arrivals as an agent keeps them: chunks of bytes, each with the time at which it came."""
    (folder / "logs").mkdir()
    for rank, chunks in enumerate(ranks):
        size, arrivals = 0, ""
        for seconds, chunk in chunks:
            size += len(chunk)
            arrivals += f"{size} {seconds:.6f}\n"
        (folder / "logs" / f"rank{rank}.log").write_bytes(b"".join(chunk for _, chunk in chunks))
        (folder / "logs" / f"rank{rank}.arrivals").write_text(arrivals)


def lines(*times: float, text: bytes = b"step done\n") -> Chunks:
    return [(seconds, text) for seconds in times]


def output(folder: Path, world_size: int = 1, matching: str | None = "step") -> Output:
    return Output(folder, world_size, batch_per_device=32, unit="images", pattern=matching)


def steps(events) -> list[Step]:
    return [event for event in events if isinstance(event, Step)]


def test_the_readers_are_the_files_of_their_folder():
    assert {"pattern", "probe"} <= set(reader_names())
    assert reader("pattern") is pattern.read
    assert all(callable(reader(name)) for name in reader_names())


def test_a_line_that_matches_ends_a_step_and_the_first_one_starts_the_clock(tmp_path):
    printed(tmp_path, [(1.0, b"loading\n"), *lines(10.0, 11.0, 13.0), (14.0, b"bye\n")])
    start, *step_events, end = pattern.read(output(tmp_path))
    source = {"source": "lines that match the pattern"}
    assert start == RunStart(0, 1, 10.0, None, "images", Scope.RANK, source)
    assert [(step.step, step.mono, step.samples) for step in step_events] == [(0, 11.0, 32), (1, 13.0, 32)]
    assert end == RunEnd(0, 13.0, None)


def test_lines_that_come_in_one_chunk_share_the_time_since_the_one_before(tmp_path):
    printed(tmp_path, [(9.0, b"step 0\n"), (12.0, b"step 1\nstep 2\nother\nstep 3\n"), (15.0, b"step 4\n")])
    assert [step.mono for step in steps(pattern.read(output(tmp_path)))] == [10.0, 11.0, 12.0, 15.0]


def test_a_line_that_comes_in_pieces_has_the_time_of_its_end(tmp_path):
    printed(
        tmp_path,
        [(10.0, b"step 0\nste"), (11.0, b"p "), (12.0, b"1\nstep 2\nst"), (13.0, b"ep 3"), (14.0, b"\n")],
    )
    assert [step.mono for step in steps(pattern.read(output(tmp_path)))] == [11.0, 12.0, 14.0]


def test_ranks_that_all_print_count_their_own_samples(tmp_path):
    printed(tmp_path, lines(1.0, 2.0, 3.0), lines(1.1, 2.1, 3.1))
    events = list(pattern.read(output(tmp_path, world_size=2)))
    starts = [event for event in events if isinstance(event, RunStart)]
    assert [(start.rank, start.world_size, start.scope) for start in starts] == [
        (0, 2, Scope.RANK),
        (1, 2, Scope.RANK),
    ]
    assert trace_of(events).samples.tolist() == [64, 64]


def test_a_rank_0_that_prints_alone_speaks_for_all(tmp_path):
    printed(tmp_path, lines(1.0, 2.0, 3.0), [(1.0, b"quiet\n")], [], [])
    start, *step_events, _ = pattern.read(output(tmp_path, world_size=4))
    assert start.scope is Scope.GLOBAL
    assert [step.samples for step in step_events] == [128, 128]
    assert trace_of([start, *step_events]).samples.tolist() == [128, 128]


def test_a_rank_that_falls_silent_among_printing_ones_is_not_overlooked(tmp_path):
    printed(tmp_path, lines(1.0, 2.0), lines(1.0, 2.0), [(1.0, b"quiet\n")])
    with pytest.raises(ValueError, match="no step that every rank finished"):
        trace_of(pattern.read(output(tmp_path, world_size=3)))


def test_named_groups_are_read_as_numbers_and_others_left_alone(tmp_path):
    matching = r"(?P<phase>train|eval) n=(?P<samples>\S+) loss (?P<loss>[-+.\deE]+|nan)(?: lr (?P<lr>\S+))?"
    text = [b"train n=16 loss 2.5 lr 1e-3\n", b"train n=8.5 loss -1.25e+2 lr .5\n", b"eval n=16 loss nan\n"]
    printed(tmp_path, [(0.0, text[0]), *((float(at), line) for at, line in enumerate(text, 1))])
    step_events = steps(pattern.read(output(tmp_path, matching=matching)))
    assert [(step.samples, step.lr) for step in step_events] == [(16, 0.001), (8.5, 0.5), (16, None)]
    assert [str(step.loss) for step in step_events] == ["2.5", "-125.0", "nan"]


def test_a_group_that_matched_no_number_is_named(tmp_path):
    printed(tmp_path, lines(1.0, 2.0, text=b"step samples=1,024\n"))
    with pytest.raises(ReaderError, match=r"group 'samples' matched b'1,024', no number"):
        list(pattern.read(output(tmp_path, matching=r"samples=(?P<samples>\S+)")))


def test_a_pattern_may_hold_any_letters_and_a_log_any_bytes(tmp_path):
    printed(tmp_path, [(1.0, b"\xff\xfe\x00\n"), *lines(2.0, 3.0, text="步骤 完成\n".encode())])
    assert len(steps(pattern.read(output(tmp_path, matching="步骤")))) == 1


def test_a_log_without_a_match_is_refused_with_the_pattern(tmp_path):
    printed(tmp_path, [(1.0, b"hello\n")])
    with pytest.raises(ReaderError, match=r"no line of rank 0 matches the pattern 'step'\."):
        list(pattern.read(output(tmp_path)))


def test_a_program_that_printed_nothing_is_refused(tmp_path):
    printed(tmp_path, [])
    with pytest.raises(ReaderError, match="no line of rank 0 matches"):
        list(pattern.read(output(tmp_path)))


def test_the_pattern_reader_without_a_pattern_says_what_it_needs(tmp_path):
    with pytest.raises(ReaderError, match="needs a 'pattern'"):
        list(pattern.read(output(tmp_path, matching=None)))


def test_a_log_that_outgrew_its_arrivals_is_refused_not_guessed(tmp_path):
    printed(tmp_path, lines(1.0, 2.0, 3.0))
    arrivals = tmp_path / "logs" / "rank0.arrivals"
    arrivals.write_text(arrivals.read_text().partition("\n")[0] + "\n2")
    with pytest.raises(ReaderError, match=r"rank0.log holds more than its arrivals tell"):
        list(pattern.read(output(tmp_path)))


@pytest.mark.parametrize("arrivals", ["nonsense\n", "1 2 3\n", "x 1.0\n", None])
def test_arrivals_that_cannot_be_read_are_refused(tmp_path, arrivals):
    printed(tmp_path, lines(1.0, 2.0))
    file = tmp_path / "logs" / "rank0.arrivals"
    file.unlink() if arrivals is None else file.write_text(arrivals)
    with pytest.raises(ReaderError, match=r"rank0.arrivals does not tell when the lines came"):
        list(pattern.read(output(tmp_path)))


def test_the_probe_reader_gives_the_events_of_all_ranks(tmp_path):
    (tmp_path / "events").mkdir()
    emitted = [[RunStart(rank, 2, 1.0, 2.0), RunEnd(rank, 3.0, 4.0)] for rank in range(2)]
    for rank, events in enumerate(emitted):
        stream.write(tmp_path / "events" / f"rank{rank}.jsonl", events)
    assert list(probe.read(output(tmp_path, world_size=2))) == [*emitted[0], *emitted[1]]


def test_a_program_that_never_called_the_probe_is_told_to(tmp_path):
    (tmp_path / "events").mkdir()
    with pytest.raises(ReaderError, match=r"call trainmark.probe in it, or name another reader"):
        list(probe.read(output(tmp_path)))
