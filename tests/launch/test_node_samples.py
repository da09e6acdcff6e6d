"""What a node says of its processors and GPUs while ranks run on it."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainmark.events import DeviceSample
from trainmark.events.stream import decode
from trainmark.launch.agent import main
from trainmark.launch.bundle import AGENT
from trainmark.machine.node_program import module_sources
from trainmark.machine.nvidia_smi import Query
from trainmark.machine.samples import SAMPLED, gpu_sample, host_clock

ROW = "3, GPU-d3, 97, 41000, 690.51, 61, 1755, 1980, 0x0000000000000024, 0x0000000000000024"
# Twice a second is how often the real one is asked; here it answers at once, so that no test waits for it.
# It knows only the older name of the throttle reasons, and tells what stands in two files beside it.
SMI = """\
#!{python}
import sys, time
from pathlib import Path
here = Path(__file__).parent
fields = sys.argv[1].partition("=")[2].split(",")
if "clocks_event_reasons.active" in fields:
    sys.exit('Field "clocks_event_reasons.active" is not a valid field to query.')
assert sys.argv[-1] == "--loop-ms=500"
while True:
    file = here / ("gpus" if sys.argv[1].startswith("--query-gpu=") else "processes")
    print(file.read_text(), end="", flush=True)
    time.sleep(0.05)
"""
GPUS = """\
0, GPU-a0, 97, 41000, 690.51, 61, 1755, 1980, 0x0000000000000024
1, GPU-b1, 1, 512, 80.0, 30, 300, 1980, 0x0000000000000001
2, GPU-c2, 96, 40000, 680.0, 60, 1755, 1980, 0x0000000000000000
"""


@pytest.fixture
def smi(tmp_path, monkeypatch) -> Path:
    """The folder of an nvidia-smi that is first on the path."""
    program = tmp_path / "nvidia-smi"
    program.write_text(SMI.format(python=sys.executable))
    program.chmod(0o755)
    (tmp_path / "gpus").write_text(GPUS)
    (tmp_path / "processes").write_text("")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    return tmp_path


@pytest.fixture
def stranger():
    """A process that is not below this one, which stands for the agent."""
    starter = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'input()'], "
        "stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)\n"
        "print(child.pid)"
    )
    reading, writing = os.pipe()
    started = subprocess.run([sys.executable, "-c", starter], stdin=reading, stdout=subprocess.PIPE)
    os.close(reading)
    yield int(started.stdout)
    os.close(writing)  # which ends it


def gpu_rows(count: int, wanted=bool, **variables: str) -> list[DeviceSample]:
    """The GPUs of the first look of which this holds, or of the last one before patience ends."""
    looking = main.NodeSampler("node1", count, variables)
    rows: list[DeviceSample] = []
    try:
        deadline = time.monotonic() + 30
        while not (rows and wanted(rows)) and time.monotonic() < deadline:
            time.sleep(0.05)
            looking.due = 0.0
            events = [decode(line) for line in looking.look().splitlines()]
            rows = [row for row in events if not row.device.endswith("/cpu")]
    finally:
        looking.gpus.close()
    return rows


def test_a_row_of_a_gpu_becomes_an_event_in_our_units():
    (row,) = Query("gpu", SAMPLED).rows(ROW)
    sample = gpu_sample(row, "node1/cuda:3")
    assert {name: value for name, value in vars(sample).items() if name not in ("mono", "wall")} == {
        "device": "node1/cuda:3",
        "utilisation": pytest.approx(0.97),
        "memory_bytes": 41000 << 20,
        "power_watts": 690.51,
        "temperature_c": 61.0,
        "clock_mhz": 1755.0,
        "clock_max_mhz": 1980.0,
        "throttle": ("sw-power-cap", "thermal"),
        "foreign_processes": 0,
        "foreign_share": None,
        "own_memory_bytes": None,
    }


def test_what_a_card_does_not_tell_is_left_out():
    line = "0, GPU-a0, [N/A], 512, [Not Supported], 40, 300, 1980, [N/A], [N/A]"
    (row,) = Query("gpu", SAMPLED).rows(line)
    event = json.loads(main.sample_line(gpu_sample(row, "n/cuda:0")))
    assert {"utilisation", "power_watts"}.isdisjoint(event) and event["throttle"] == []
    assert {"memory_bytes", "temperature_c", "clock_mhz", "clock_max_mhz"} <= set(event)


@pytest.mark.parametrize("line", ["", "NVIDIA-SMI has failed", "0, 1", "x" + GPUS])
def test_a_line_that_is_no_row_is_dropped(smi, line):
    (smi / "gpus").write_text(f"{line.splitlines()[0] if line else ''}\n{GPUS}")
    assert [row.device for row in gpu_rows(1)] == ["node1/cuda:0"]


def test_the_processors_are_told_twice_a_second_as_events_that_can_be_read():
    looking = main.NodeSampler("node1")
    assert looking.look() == b""
    looking.due = time.monotonic()
    first = decode(looking.look().splitlines()[0])
    assert isinstance(first, DeviceSample) and first.device == "node1/cpu"
    assert first.memory_bytes > 0 and looking.look() == b""


def test_our_own_work_is_not_foreign():
    looking = main.NodeSampler("n")
    before = host_clock()
    end = time.process_time() + 0.4
    while time.process_time() < end:
        pass
    row = looking.cpu.sample()
    passed = host_clock().total - before.total
    assert row.foreign_share <= row.utilisation - 0.3 / passed + 0.05


def test_the_gpus_that_the_ranks_use_are_read_from_programs_that_run_beside_them(smi):
    assert [row.device for row in gpu_rows(2)] == ["node1/cuda:0", "node1/cuda:1"]


def test_the_gpus_that_the_ranks_use_are_those_that_cuda_shows_them(smi):
    rows = gpu_rows(1, CUDA_VISIBLE_DEVICES="2,0")
    assert [(row.device, row.memory_bytes) for row in rows] == [("node1/cuda:2", 40000 << 20)]


def test_a_field_that_the_driver_does_not_know_is_asked_for_no_more(smi):
    assert [row.throttle for row in gpu_rows(1)] == [("sw-power-cap", "thermal")]


def test_a_strangers_process_on_a_gpu_is_counted_there_and_ours_is_not(smi, stranger):
    unseen = 2**22 + 1
    (smi / "processes").write_text(
        f"GPU-a0, {os.getpid()}, 30000\nGPU-c2, {stranger}, 700\n"
        f"GPU-c2, {os.getpid()}, [N/A]\nGPU-c2, {unseen}, 1\n"
    )
    rows = gpu_rows(3, wanted=lambda rows: any(row.foreign_processes for row in rows))
    assert [row.foreign_processes for row in rows] == [0, 0, 1]
    # Of the last only the growth since the start is known: none.
    assert [row.own_memory_bytes for row in rows] == [30000 << 20, 0, 0]


def test_the_programs_that_watch_the_gpus_are_no_memory_of_the_trial(smi):
    looking = main.NodeSampler("node1", 1, {})
    try:
        assert len(looking.cpu._tree.watchers) == 2
    finally:
        looking.gpus.close()


def test_a_process_that_has_left_the_gpu_is_counted_no_more(smi, stranger, monkeypatch):
    monkeypatch.setattr("trainmark.machine.samples.GONE_SECONDS", 0.2)
    processes = smi / "processes"
    processes.write_text(f"GPU-a0, {stranger}, 700\n")
    counts: list[int] = []

    def came_and_went(rows: list[DeviceSample]) -> bool:
        counts.append(rows[0].foreign_processes)
        if counts[-1]:
            processes.write_text("")
        return 1 in counts and counts[-1] == 0

    gpu_rows(1, wanted=came_and_went)
    assert 1 in counts and counts[-1] == 0


def test_a_trial_on_processors_starts_no_nvidia_smi():
    assert main.NodeSampler("n", gpus=0).gpus is None


def test_every_file_of_the_agent_is_sent():
    files = {path.stem for path in Path(main.__file__).parent.glob("*.py")} - {"__init__"}
    sent = list(module_sources(AGENT))
    assert sent[-1] == AGENT and {f"launch.agent.{name}" for name in files} <= set(sent)


def test_every_file_comes_after_those_that_it_imports():
    sent: list[str] = []
    for name, source in module_sources(AGENT).items():
        lines = [line.split()[1] for line in source.splitlines() if line.startswith("from trainmark.")]
        assert {line.removeprefix("trainmark.") for line in lines} <= set(sent)
        sent.append(name)
