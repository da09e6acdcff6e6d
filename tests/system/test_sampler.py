from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from trainmark.events.schema import DeviceSample
from trainmark.events.stream import read
from trainmark.launch.agent.ranks import PR_SET_CHILD_SUBREAPER
from trainmark.machine.process_tree import ProcessTree
from trainmark.machine.sampler import GpuSampler, Sampler, throttle_names
from trainmark.machine.samples import CpuClock, CpuSampler, busy_share, foreign_share

SPIN = "while True: pass"


@contextmanager
def busy(code: str = SPIN) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", code])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def seconds_used(tree: ProcessTree, at_least: float) -> float:
    """Wait until the tree has used this much, so that the assertion does not hang on the host's load."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        tree.refresh()
        if (used := tree.seconds()) >= at_least:
            return used
        time.sleep(0.02)
    return tree.seconds()


def rows_after(sampler_path: Path, count: int) -> list[DeviceSample]:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if sampler_path.exists() and sampler_path.read_bytes().count(b"\n") >= count:
            break
        time.sleep(0.02)
    return [event for event in read(sampler_path) if isinstance(event, DeviceSample)]


def test_a_childs_work_is_the_trees_own():
    with busy() as child:
        assert seconds_used(ProcessTree(child.pid), 0.2) >= 0.2


def test_a_grandchild_whose_parent_has_died_still_belongs_to_the_tree_of_one_that_adopts_it():
    orphan = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SPIN!r}])"
    adopt = f"import ctypes; ctypes.CDLL(None).prctl({PR_SET_CHILD_SUBREAPER}, 1, 0, 0, 0)"
    start = (
        f"import subprocess, sys, time; subprocess.run([sys.executable, '-c', {orphan!r}]); time.sleep(60)"
    )
    code = f"{adopt}; {start}"
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    try:
        assert seconds_used(ProcessTree(process.pid), 0.5) >= 0.5
    finally:
        os.killpg(process.pid, 9)
        process.wait()


def test_an_unrelated_process_is_not_in_the_tree():
    with busy() as ours, busy() as theirs:
        tree = ProcessTree(ours.pid)
        tree.refresh()
        assert ours.pid in tree.members
        assert tree.count_others([ours.pid, theirs.pid]) == 1


def test_a_program_with_brackets_in_its_name_is_read_rightly(tmp_path):
    (tmp_path / "7").mkdir()
    after_name = "S 1 7 7 " + " ".join(["0"] * 7) + " 100 50 25 25 " + " ".join(["0"] * 30)
    (tmp_path / "7/stat").write_text(f"7 (a) b (c) {after_name}")
    tree = ProcessTree(7, tmp_path)
    tree.refresh()
    assert tree.seconds() == pytest.approx(200 / os.sysconf("SC_CLK_TCK"))


def test_a_busy_process_is_foreign_unless_it_is_the_trials_own():
    """One stretch of time seen twice, as the busy process's own sampler and as a stranger's."""
    with busy() as worker, busy("import time; time.sleep(60)") as stranger:
        own, strange = CpuSampler(ProcessTree(worker.pid)), CpuSampler(ProcessTree(stranger.pid))
        tree, start = ProcessTree(worker.pid), time.monotonic()
        before = seconds_used(tree, 0.0)
        worked = seconds_used(tree, before + 0.6) - before
        own_view, strange_view = own.sample().foreign_share, strange.sample().foreign_share
        host_seconds = (time.monotonic() - start) * (os.cpu_count() or 1)
    assert own_view is not None and strange_view is not None
    assert strange_view - own_view > 0.5 * worked / host_seconds > 0


def test_shares_are_of_the_whole_host():
    before, after = CpuClock(total=100.0, idle=80.0), CpuClock(total=108.0, idle=82.0)
    assert busy_share(before, after) == 0.75
    assert foreign_share(before, after, our_seconds=4.0) == 0.25
    assert foreign_share(before, after, our_seconds=7.0) == 0.0


def test_a_share_that_cannot_be_known_is_none():
    clock = CpuClock(total=100.0, idle=80.0)
    assert busy_share(clock, clock) is None
    assert foreign_share(clock, CpuClock(108.0, 82.0), our_seconds=-3.0) is None


def test_package_power_is_taken_from_the_energy_counter_also_when_it_goes_round(plant):
    package = "sys/class/powercap/intel-rapl:0"
    files = {f"{package}/name": "package-0\n", f"{package}/max_energy_range_uj": "1000000000\n"}
    root = plant({**files, f"{package}/energy_uj": "999000000\n"})
    sampler = CpuSampler(ProcessTree(os.getpid()), root)
    plant({f"{package}/energy_uj": "9000000\n"})
    time.sleep(0.02)
    watts = sampler.sample().power_watts
    ten_joules_over_the_sleep = 10 / 0.02
    assert watts is not None and 0 < watts <= ten_joules_over_the_sleep


def test_the_hottest_package_and_the_clocks_are_read_from_sys(plant):
    policy = "sys/devices/system/cpu/cpufreq/policy0"
    root = plant(
        {
            "sys/class/hwmon/hwmon0/name": "nvme\n",
            "sys/class/hwmon/hwmon0/temp1_input": "99000\n",
            "sys/class/hwmon/hwmon1/name": "coretemp\n",
            "sys/class/hwmon/hwmon1/temp1_input": "61000\n",
            "sys/class/hwmon/hwmon2/name": "coretemp\n",
            "sys/class/hwmon/hwmon2/temp1_input": "64500\n",
            f"{policy}/scaling_cur_freq": "2300000\n",
            f"{policy}/cpuinfo_max_freq": "3200000\n",
        }
    )
    row = CpuSampler(ProcessTree(os.getpid()), root).sample()
    assert (row.temperature_c, row.clock_mhz, row.clock_max_mhz) == (64.5, 2300.0, 3200.0)


def test_idle_and_owner_set_clocks_are_no_throttling():
    assert throttle_names(0x1 | 0x2) == ()
    assert throttle_names(None) == ()


def test_throttle_bits_become_names_each_once():
    assert throttle_names(0x4 | 0x20 | 0x40) == ("sw-power-cap", "thermal")


def test_each_gpu_and_the_host_have_a_row_in_each_round(tmp_path, nvml):
    nvml.throttle_bits = 0x1 | 0x8
    with Sampler(tmp_path / "samples.jsonl", interval=0.01, nvml_module=nvml) as sampler:
        rows = rows_after(tmp_path / "samples.jsonl", 3)
    assert sampler.failure is None
    assert [row.device for row in rows[:3]] == ["cpu", "cuda:0", "cuda:1"]
    gpu = rows[1]
    assert (gpu.utilisation, gpu.memory_bytes, gpu.power_watts) == (0.93, 3 << 30, 287.5)
    assert (gpu.temperature_c, gpu.clock_mhz, gpu.clock_max_mhz) == (61, 1455, 1530)
    assert gpu.throttle == ("hw-slowdown",)


def test_only_the_devices_asked_for_are_sampled(tmp_path, nvml):
    path = tmp_path / "samples.jsonl"
    with Sampler(path, interval=0.01, device_indices=[1], nvml_module=nvml):
        rows = rows_after(path, 2)
    assert [row.device for row in rows[:2]] == ["cpu", "cuda:1"]


def test_a_strangers_process_on_the_gpu_is_counted_and_ours_is_not(tmp_path, nvml):
    path = tmp_path / "samples.jsonl"
    unseen = 2**22 + 1
    with busy() as ours, busy() as theirs:
        nvml.pids = [ours.pid, theirs.pid, unseen]
        with Sampler(path, interval=0.01, root_pid=ours.pid, nvml_module=nvml):
            rows = rows_after(path, 2)
    assert rows[1].foreign_processes == 1


def gpu_sampler(nvml, tree: ProcessTree) -> GpuSampler:
    return GpuSampler(nvml, {0: 0}, tree)


def test_memory_on_a_gpu_is_that_of_our_own_processes(nvml):
    with busy() as theirs:
        nvml.pids = [os.getpid(), theirs.pid]
        (row,) = gpu_sampler(nvml, ProcessTree(os.getpid())).sample()
    assert row.own_memory_bytes == 1 << 30


def test_a_gpu_that_only_others_use_holds_nothing_of_ours(nvml):
    with busy() as theirs:
        nvml.pids = [theirs.pid]
        sampler = gpu_sampler(nvml, ProcessTree(os.getpid()))
        nvml.used += 1 << 30
        (row,) = sampler.sample()
    assert row.own_memory_bytes == 0


@pytest.mark.parametrize("case", ["no process is listed", "numbers of the host", "memory is unknown"])
def test_where_processes_cannot_be_matched_it_is_what_was_added_since_the_start(case, nvml):
    if case == "numbers of the host":
        nvml.pids = [2**22 + 1]
    elif case == "memory is unknown":
        nvml.pids, nvml.process_bytes = [os.getpid()], None
    sampler = gpu_sampler(nvml, ProcessTree(os.getpid()))
    (before,) = sampler.sample()
    nvml.used += 5 << 30
    (after,) = sampler.sample()
    assert (before.own_memory_bytes, after.own_memory_bytes) == (0, 5 << 30)


def test_a_few_megabytes_more_are_the_drivers(nvml):
    sampler = gpu_sampler(nvml, ProcessTree(os.getpid()))
    nvml.used += 4 << 20
    assert sampler.sample()[0].own_memory_bytes == 0


def test_host_memory_is_the_sum_below_the_root_without_those_that_watch(tmp_path):
    def plant_process(pid: int, parent: int, pages: int) -> None:
        (tmp_path / str(pid)).mkdir()
        fields = f"S {parent} " + " ".join(["0"] * 19) + f" {pages} 0 0"
        (tmp_path / f"{pid}/stat").write_text(f"{pid} (python) {fields}")

    for pid, parent, pages in ((7, 1, 1000), (8, 7, 20), (9, 8, 3), (10, 7, 500), (11, 1, 9000)):
        plant_process(pid, parent, pages)
    tree = ProcessTree(7, tmp_path)
    tree.watchers.add(10)
    tree.refresh()
    assert tree.resident_bytes() == 23 * os.sysconf("SC_PAGE_SIZE")


def test_a_childs_memory_is_in_the_row_of_the_host():
    hold = "block = b'x' * (64 << 20); print(flush=True); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", hold], **pipes) as child:
        child.stdout.readline()
        row = CpuSampler(ProcessTree(os.getpid())).sample()
        child.communicate(b"\n")
    assert row.own_memory_bytes >= 64 << 20


def test_a_machine_without_a_driver_still_samples_its_processors(tmp_path, nvml):
    nvml.unsupported = {"nvmlInit"}
    path = tmp_path / "samples.jsonl"
    with Sampler(path, interval=0.01, nvml_module=nvml) as sampler:
        rows = rows_after(path, 2)
    assert sampler.failure is None
    assert {row.device for row in rows} == {"cpu"}
    assert rows[0].memory_bytes


def test_a_full_disk_ends_the_sampling_and_not_the_trial(nvml):
    with Sampler(Path("/dev/full"), interval=0.01, nvml_module=nvml) as sampler:
        deadline = time.monotonic() + 30
        while sampler.failure is None and time.monotonic() < deadline:
            time.sleep(0.01)
    assert sampler.failure is not None and "No space left" in sampler.failure


def test_a_folder_that_does_not_exist_is_a_failure_and_no_exception(tmp_path, nvml):
    with Sampler(tmp_path / "no/such/samples.jsonl", nvml_module=nvml) as sampler:
        pass
    assert sampler.failure is not None


def test_leaving_does_not_wait_for_the_next_round(tmp_path, nvml):
    with Sampler(tmp_path / "samples.jsonl", interval=3600, nvml_module=nvml) as sampler:
        pass
    assert not sampler._thread.is_alive()
