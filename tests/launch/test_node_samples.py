"""What a node says of its processors and GPUs while ranks run on it."""

import json
import os
import stat
import time
from pathlib import Path

import pytest

from trainmark.events import DeviceSample
from trainmark.events.stream import decode
from trainmark.launch.agent import samples
from trainmark.launch.bundle import AGENT, MODULES

ROW = "3, 97, 41000, 690.51, 61, 1755, 1980, 0x0000000000000024"


def test_a_row_of_a_gpu_becomes_an_event_in_our_units():
    assert samples.gpu_row(ROW, "node1") == {
        "device": "node1/cuda:3",
        "utilisation": pytest.approx(0.97),
        "memory_bytes": 41000 << 20,
        "power_watts": 690.51,
        "temperature_c": 61.0,
        "clock_mhz": 1755.0,
        "clock_max_mhz": 1980.0,
        "throttle": ["sw-power-cap", "thermal"],
    }


def test_what_a_card_does_not_tell_is_left_out():
    row = samples.gpu_row("0, [N/A], 512, [Not Supported], 40, 300, 1980, [N/A]", "n")
    assert set(row) == {"device", "memory_bytes", "temperature_c", "clock_mhz", "clock_max_mhz"}


@pytest.mark.parametrize("line", ["", "NVIDIA-SMI has failed", "0, 1", "x" + ROW])
def test_a_line_that_is_no_row_is_dropped(line):
    assert samples.gpu_row(line, "n") is None


def test_the_processors_are_told_twice_a_second_as_events_that_can_be_read():
    looking = samples.Samples("node1")
    assert looking.look() == b""
    looking.due = time.monotonic()
    first = decode(looking.look().splitlines()[0])
    assert isinstance(first, DeviceSample) and first.device == "node1/cpu"
    assert first.memory_bytes > 0 and looking.look() == b""


def test_our_own_work_is_not_foreign():
    looking = samples.Samples("n")
    end = time.process_time() + 0.4
    while time.process_time() < end:
        pass
    before, ours = looking.before, looking.ours
    row = looking.processors()
    passed = looking.before[0] - before[0]
    assert looking.ours - ours >= 0.35
    assert row["foreign_share"] <= row["utilisation"] - 0.3 / passed + 0.05


def test_gpus_are_read_from_one_program_that_runs_beside_the_ranks(tmp_path, monkeypatch):
    smi = tmp_path / "nvidia-smi"
    smi.write_text(f"#!/bin/sh\nwhile true; do echo '{ROW}'; sleep 0.05; done\n")
    smi.chmod(smi.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    looking = samples.Samples("node1")
    try:
        deadline = time.monotonic() + 30
        while not (rows := looking.gpus()) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert [row["device"] for row in rows] == ["node1/cuda:3"]
        assert json.dumps(rows)
    finally:
        looking.smi.kill()
        looking.smi.wait()
        looking.smi.stdout.close()


def test_every_file_of_the_agent_is_sent():
    files = {path.stem for path in Path(samples.__file__).parent.glob("*.py")} - {"__init__"}
    assert sorted(files) == sorted(AGENT) and MODULES[-1] == "launch.agent.main"
