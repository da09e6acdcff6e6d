"""The emitter inside a measured program, as programs use it."""

from __future__ import annotations

import errno
import io
import json
import math
import os
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import pytest

from trainmark import probe
from trainmark.events import Mark, RunEnd, RunStart, Scope, Step
from trainmark.events.stream import read

PACKAGE = Path(probe.__file__).resolve().parent
PYTHONS = {
    minor: sorted(Path("~/.pyenv/versions").expanduser().glob(f"3.{minor}.*/bin/python"))
    for minor in range(7, 14)
}
PROGRAM = """
from trainmark import probe

run = probe.start(unit="images", framework="none")
for step in range(3):
    run.step(samples=8, loss=lambda: 0.5, lr=0.1)
run.mark("epoch", epoch=1)
run.end(peak_flops=1e12)
"""


@pytest.fixture
def events(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv(probe.EVENTS_FOLDER, str(tmp_path))
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    return tmp_path / "rank0.jsonl"


def test_a_training_that_goes_on_numbers_its_steps_from_there_behind_the_last_whole_line(events):
    events.write_text('{"event":"note","rank":0}\n{"event":"st')
    run = probe.start(first_step=5, resumed_step=5)
    run.step(samples=1)
    run.end()
    before, _, step, _ = events.read_text().splitlines()
    assert before == '{"event":"note","rank":0}'
    assert json.loads(step)["step"] == 5


def test_wall_times_are_those_of_the_clock_on_the_wall(events):
    before = time.time()
    probe.start().end()
    assert all(before - 1 < event.wall < time.time() + 1 for event in read(events))


def test_the_node_is_told_where_the_launcher_names_it(events, monkeypatch):
    monkeypatch.setenv(probe.NODE, "gpu-07")
    probe.start(unit="images", framework="none").end()
    assert next(read(events)).facts == {"framework": "none", "node": "gpu-07", "clock": "host"}


def test_the_parts_of_a_step_come_back_as_they_were_told(events):
    run = probe.start()
    run.step(samples=8, data_wait=0.1, compute=lambda: 0.3, communication=lambda: 0.2)
    run.end()
    (step,) = (event for event in read(events) if isinstance(event, Step))
    assert (step.data_wait, step.compute, step.communication) == (0.1, 0.3, 0.2)


class LaggingClock(probe.HostClock):
    """A device that passes a step only when it is told to, or waited for."""

    def __init__(self) -> None:
        self.issued, self.passed, self.waits = 0, 0, 0

    def mark(self):
        self.issued += 1
        return self.issued

    def seconds(self, mark, wait):
        if wait and mark > self.passed:
            self.waits += 1
            self.passed = mark
        return float(mark) if mark <= self.passed else None


def test_what_a_program_says_arrives_as_events(events, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "4")
    run = probe.start(unit="images", scope="global", framework="pytorch")
    run.step(samples=32, loss=2.5, lr=0.1, data_wait=0.01, memory=1 << 30)
    run.mark("checkpoint", path="x")
    run.end(peak_flops=1e12)
    start, step, mark, end = read(events)
    assert (start.rank, start.world_size, start.unit, start.scope) == (0, 4, "images", Scope.GLOBAL)
    assert start.facts == {"framework": "pytorch", "clock": "host"}
    assert (step.samples, step.loss, step.lr, step.data_wait, step.memory) == (32, 2.5, 0.1, 0.01, 1 << 30)
    assert (mark.kind, mark.facts, end.facts) == ("checkpoint", {"path": "x"}, {"peak_flops": 1e12})
    assert [type(event) for event in (start, step, mark, end)] == [RunStart, Step, Mark, RunEnd]


def test_times_rise_and_wall_and_monotonic_time_keep_their_distance(events):
    run = probe.start()
    for _ in range(50):
        run.step(samples=1)
    run.end()
    recorded = list(read(events))
    monos = [event.mono for event in recorded]
    assert monos == sorted(monos)
    assert {round(event.wall - event.mono, 3) for event in recorded} == {
        round(recorded[0].wall - recorded[0].mono, 3)
    }


def test_a_rank_writes_its_own_file(events, monkeypatch):
    monkeypatch.setenv("RANK", "3")
    probe.start().end()
    assert not events.exists()
    assert next(read(events.with_name("rank3.jsonl"))).rank == 3


@pytest.mark.parametrize("rank", ["0", "not a number"])
def test_outside_trainmark_every_call_does_nothing(tmp_path, monkeypatch, rank):
    monkeypatch.delenv(probe.EVENTS_FOLDER, raising=False)
    monkeypatch.setenv("RANK", rank)
    monkeypatch.chdir(tmp_path)
    run = probe.start(unit="images", clock=LaggingClock())
    run.step(samples=1, loss=lambda: pytest.fail("a loss was read back for nobody"))
    run.mark("epoch")
    run.flush()
    run.end()
    assert list(tmp_path.iterdir()) == []


def test_a_number_that_must_be_fetched_is_fetched_only_once_the_device_has_passed_the_step(events):
    clock, fetched = LaggingClock(), []
    run = probe.start(clock=clock)
    for step in range(3):
        run.step(samples=1, loss=lambda step=step: fetched.append(step) or float(step))
    assert fetched == []
    clock.passed = 2
    run.step(samples=1)
    assert fetched == [0]
    run.end()
    assert fetched == [0, 1, 2]
    assert [event.loss for event in read(events) if isinstance(event, Step)] == [0.0, 1.0, 2.0, None]


def test_a_device_far_behind_is_waited_for_one_step_at_a_time_and_the_order_is_kept(events):
    clock, furthest = LaggingClock(), 0
    run = probe.start(clock=clock)
    for _ in range(5 * probe.MOST_PENDING):
        run.step(samples=1)
        furthest = max(furthest, clock.issued - clock.passed)
    assert furthest == probe.MOST_PENDING
    assert clock.waits == clock.issued - probe.MOST_PENDING
    run.end()
    steps = [event for event in read(events) if isinstance(event, Step)]
    assert [step.step for step in steps] == list(range(5 * probe.MOST_PENDING))
    assert [step.mono for step in steps] == [float(step.step + 1) for step in steps]


def test_a_device_that_keeps_up_is_never_waited_for(events):
    clock = LaggingClock()
    run = probe.start(clock=clock)
    for _ in range(3 * probe.MOST_PENDING):
        clock.passed = clock.issued
        run.step(samples=1)
    assert clock.waits == 0


def test_a_mark_stands_behind_the_steps_before_it_however_late_the_device_is(events):
    run = probe.start(clock=LaggingClock())
    run.step(samples=1)
    run.mark("eval")
    run.step(samples=1)
    run.end()
    assert [type(event) for event in read(events)] == [RunStart, Step, Mark, Step, RunEnd]


def test_a_loss_that_is_not_a_number_is_passed_on(events):
    run = probe.start()
    run.step(samples=1, loss=float("nan"))
    run.end()
    (step,) = [event for event in read(events) if isinstance(event, Step)]
    assert math.isnan(step.loss)


def test_numbers_of_array_libraries_arrive_as_numbers(events):
    numpy = pytest.importorskip("numpy")
    run = probe.start(shape=Path("folder"))
    run.step(samples=numpy.int64(8), loss=numpy.float32(0.5), memory=numpy.int64(1 << 40), lr=Fraction(1, 4))
    run.end()
    start, step, _ = read(events)
    assert (step.samples, step.loss, step.memory, step.lr) == (8, 0.5, 1 << 40, 0.25)
    assert start.facts == {"shape": "folder", "clock": "host"}


def test_calls_after_the_end_are_harmless(events):
    run = probe.start()
    run.end()
    size = events.stat().st_size
    run.step(samples=1)
    run.end()
    run.close()
    assert events.stat().st_size == size


def test_a_program_that_leaves_without_end_still_leaves_its_steps(tmp_path):
    program = "from trainmark import probe\nrun = probe.start()\nrun.step(samples=1)\nraise SystemExit(3)\n"
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, probe.EVENTS_FOLDER: str(tmp_path)}
    )
    assert done.returncode == 3
    assert [type(event) for event in read(tmp_path / "rank0.jsonl")] == [RunStart, Step]


def test_a_full_disk_is_an_error_that_names_the_file(tmp_path, monkeypatch):
    full = tmp_path / "rank0.jsonl"
    full.symlink_to("/dev/full")
    monkeypatch.setenv(probe.EVENTS_FOLDER, str(tmp_path))
    with pytest.raises(OSError, match="No space left on device") as refused:
        probe.start(rank=0)
    assert (refused.value.errno, refused.value.filename) == (errno.ENOSPC, str(full))


def test_a_write_cut_short_by_the_system_is_carried_on(tmp_path):
    class Reluctant:
        """Takes at most seven bytes a call, as a nearly full disk or a signal may make any file do."""

        name = "reluctant"

        def __init__(self) -> None:
            self.taken = b""

        def write(self, data) -> int:
            self.taken += bytes(data[:7])
            return min(7, len(data))

        def close(self) -> None:
            pass

    file = Reluctant()
    run = probe.Run(file, 0, probe.HostClock())
    for _ in range(20):
        run.step(samples=1)
    run.end()
    lines = file.taken.decode().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["step"] * 20 + ["run_end"]


def test_a_folder_that_is_gone_is_an_error_that_names_it(tmp_path, monkeypatch):
    monkeypatch.setenv(probe.EVENTS_FOLDER, str(tmp_path / "gone"))
    with pytest.raises(FileNotFoundError, match=r"gone/rank0.jsonl"):
        probe.start(rank=0)


@pytest.mark.parametrize("minor", PYTHONS)
def test_it_runs_inside_every_python_that_programs_still_use(minor, tmp_path):
    if not PYTHONS[minor]:
        pytest.skip(f"pyenv has no Python 3.{minor} here")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    events = tmp_path / "events"
    events.mkdir()
    # Only what a run copies beside a measured program: the probe, not the harness.
    package = tmp_path / "code" / "trainmark"
    package.mkdir(parents=True)
    for name in ("__init__.py", "probe.py"):
        (package / name).write_bytes((PACKAGE / name).read_bytes())
    done = subprocess.run(
        [PYTHONS[minor][-1], "-W", "error", str(program)],
        env={"PYTHONPATH": str(package.parent), probe.EVENTS_FOLDER: str(events)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    kinds = [type(event) for event in read(events / "rank0.jsonl")]
    assert kinds == [RunStart, Step, Step, Step, Mark, RunEnd]


def test_it_needs_nothing_but_the_standard_library():
    program = (
        "import sys; there = {*sys.modules}; from trainmark import probe; print(*{*sys.modules} - there)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    ours = {name for name in done.stdout.split() if name.partition(".")[0] not in sys.stdlib_module_names}
    assert ours == {"trainmark", "trainmark.probe"}


def test_a_program_whose_standard_error_is_no_file_is_measured_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINMARK_EVENTS", str(tmp_path))
    monkeypatch.setattr("sys.stderr", io.StringIO())
    run = probe.start()
    run.step(samples=1)
    run.end()
    assert (tmp_path / "rank0.jsonl").read_text().count("\n") == 3
