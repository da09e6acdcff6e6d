"""The probe inside programs that replace the clock, or close descriptors that are not theirs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time

import pytest

from trainmark import probe
from trainmark.events import Step
from trainmark.events.stream import read


@pytest.fixture
def events(tmp_path, monkeypatch):
    monkeypatch.setenv(probe.EVENTS_FOLDER, str(tmp_path))
    return tmp_path / "rank0.jsonl"


def test_a_clock_replaced_in_every_module_times_no_step(events, monkeypatch):
    real = time.monotonic
    for module in (time, probe):
        for name in [name for name, value in vars(module).items() if value is real]:
            monkeypatch.setattr(module, name, lambda: 5.0)
    run = probe.start()
    run.step(samples=1)
    run.end()
    (step,) = (event for event in read(events) if isinstance(event, Step))
    assert 0.0 <= real() - step.mono < 60.0


@pytest.mark.parametrize(
    ("readings", "drift"),
    [
        ([(10.0, 70.0), (10.5, 70.5), (11.0, 71.01)], None),
        ([(10.0, 70.0), (10.03, 70.28)], 0.25),  # a tenth of the pace, too short for more than one look
        ([(10.0, 70.0), (12.8, 70.28)], -2.52),
        ([(10.0, 70.0), (10.24, 70.3)], 0.06),  # four fifths of the pace
        ([None, (10.0, 70.0), (10.24, 70.3)], 0.06),  # the first reading was held up
        ([(10.0 + n / 10, 70.0 + n) for n in range(8)], 5.4),  # the widest of its gaps may be a sleep
        ([(10.0 + n, 70.0 + n + 3600 * (n > 4)) for n in range(8)], None),  # the machine slept for an hour
        ([None, None], None),
    ],
)
def test_a_clock_that_leaves_the_machine_s_is_told_and_a_sleep_is_not(monkeypatch, readings, drift):
    left = iter(readings)
    monkeypatch.setattr(probe, "clock_and_machine", lambda: next(left))
    check = probe.ClockCheck()
    for _ in readings[2:]:
        check.look()
    assert check.facts() == ({} if drift is None else {"clock_drift": drift})


FAKED = "from trainmark import probe; import time; run = probe.start(); time.sleep({}); run.end()"


@pytest.mark.skipif(not shutil.which("faketime"), reason="libfaketime is not installed")
@pytest.mark.parametrize(("pace", "seconds"), [("x10", 10), ("x0.1", 0.05)])
def test_libfaketime_is_found_by_the_kernel_s_own_time(events, tmp_path, pace, seconds):
    command = ["faketime", "-f", f"+0 {pace}", sys.executable, "-c", FAKED.format(seconds)]
    subprocess.run(command, check=True, env={**os.environ, probe.EVENTS_FOLDER: str(tmp_path)})
    *_, end = events.read_text(encoding="utf-8").splitlines()
    assert abs(json.loads(end)["facts"]["clock_drift"]) > probe.CLOCK_SECONDS


def test_lines_never_go_into_a_file_that_the_program_opened_at_the_descriptor(events, tmp_path):
    run = probe.start()
    run.step(samples=1)
    run.flush()
    ours = run._file._descriptor
    os.close(ours)
    victim = os.open(tmp_path / "checkpoint", os.O_WRONLY | os.O_CREAT)
    assert victim == ours  # the lowest number that is free
    os.write(victim, b"CHECKPOINT")
    run.step(samples=1)
    run.end()
    os.close(victim)
    assert (tmp_path / "checkpoint").read_bytes() == b"CHECKPOINT"
    assert len([event for event in read(events) if isinstance(event, Step)]) == 2


def test_a_closed_descriptor_is_opened_anew_and_a_file_that_is_gone_is_an_error(events, tmp_path):
    run = probe.start()
    os.close(run._file._descriptor)
    run.step(samples=1)
    run.flush()
    assert len(list(read(events))) == 2
    os.close(run._file._descriptor)
    events.unlink()
    with pytest.raises(OSError, match=r"rank0\.jsonl"):
        run.step(samples=1)
        run.flush()


def test_a_short_program_that_leaves_at_once_leaves_most_of_its_steps(events):
    steps = "for _ in range(12): run.step(1)"
    program = f"import os; from trainmark import probe; run = probe.start()\n{steps}\nos._exit(0)"
    subprocess.run([sys.executable, "-c", program], check=True)
    steps = [event.step for event in read(events) if isinstance(event, Step)]
    assert len(steps) >= 8 and steps == list(range(len(steps)))
