"""Each check on nodes of which one is not as it should be."""

from __future__ import annotations

from dataclasses import replace

import pytest
from healthy_node import ENVIRONMENT, ETH0, FACTS, GPU, HOST, PORT, PYTHON, findings, troubles

from trainmark.machine.diagnosis import CHECKS, ESSENTIAL
from trainmark.machine.examination import (
    ClockOffset,
    DiskSpace,
    ExaminedNode,
    GpuProcess,
    NodeCall,
    NodeDataset,
    ResourceLimit,
    most_common,
)
from trainmark.machine.findings import GIB, MIB, FindingMark


def with_gpu(**changes):
    """The second GPU of the node differs."""
    return replace(FACTS, gpus=(GPU, replace(GPU, index="1", uuid="GPU-1", **changes)))


def with_host(**changes):
    return replace(FACTS, host=replace(HOST, **changes))


def with_environment(**changes):
    return replace(FACTS, interpreters={PYTHON: replace(ENVIRONMENT, **changes)})


BAD, WARN = FindingMark.BAD, FindingMark.WARN
# Each: what the third of three nodes tells, the check that finds it, how bad it is, a word of the sentence,
# and a word of the fix.
SICK = [
    (None, "answers", BAD, "did not answer within 60 s", "ssh n3 true"),
    (replace(FACTS, interpreters={PYTHON: None}), "interpreters", BAD, PYTHON, "install pytorch"),
    (with_environment(version="3.10.1"), "interpreters", BAD, "Python 3.10.1", "--force"),
    (with_environment(packages={"torch": "2.12.0"}), "framework versions", BAD, "torch 2.12.0", "--force"),
    (with_environment(packages={"trainmark": "0.1"}), "Trainmark", BAD, "0.1", "pip uninstall"),
    (with_environment(hash="f" * 16), "environment hash", BAD, "not the same files", "--force"),
    (
        with_environment(hash="f" * 16, packages={"torch": "2.13.0", "numpy": "2.1.0"}),
        "environment hash", BAD, "numpy 2.1.0, others 2.2.0", "--force",
    ),
    (replace(FACTS, gpus=(GPU,)), "devices", BAD, "1 × Tesla", "reboot"),
    (replace(FACTS, gpus=(), gpu_trouble="couldn't communicate"), "devices", BAD, "couldn't", "dmesg"),
    (replace(FACTS, gpus=tuple(replace(gpu, driver="470.1") for gpu in FACTS.gpus)),
     "driver", BAD, "470.1", "535.183.01"),
    (with_gpu(clock_set_mhz=1005.0), "device settings", BAD, "GPU 1: application clock 1005", "-ac 877,1290"),
    (with_gpu(power_limit_w=250.0), "device settings", BAD, "250 W", "-i 1 -pl 300"),
    (with_gpu(ecc="Disabled"), "device settings", BAD, "ECC Disabled", "-e 1`, then reboot"),
    (with_gpu(persistence="Disabled"), "device settings", WARN, "persistence", "-pm 1"),
    (with_gpu(throttle="0x0000000000000040"), "device health", BAD, "GPU 1", "PERFORMANCE"),
    (with_gpu(throttle="0x0000000000000004"), "device health", WARN, "power limit", "POWER"),
    (with_gpu(ecc_errors=3.0), "device health", BAD, "3 memory errors", "-i 1 -r"),
    (with_gpu(temperature=81.0), "device health", WARN, "81 °C", "fans"),
    (with_gpu(mig="Enabled"), "device health", WARN, "MIG", "-mig 0"),
    (
        replace(FACTS, gpu_processes=(GpuProcess("GPU-1", 4711.0, "python", 900.0),)),
        "processes on devices", BAD, "process 4711 (python, 900 MiB) is on GPU 1", "kill 4711",
    ),
    (with_gpu(memory_used_mib=9000.0), "processes on devices", WARN, "9000 MiB", "fuser"),
    (with_host(machine="aarch64"), "processors", BAD, "aarch64", "--exclude n3"),
    (with_host(cpus=24), "processors", WARN, "24 processors", "nproc"),
    (with_host(cpu_quota=4.0), "processors", WARN, "4 of 48", "--cpus"),
    (with_host(governor="powersave"), "processors", WARN, "powersave", "cpupower"),
    (with_host(load=30.0), "load", WARN, "30.0", "ps -eo"),
    (with_host(memory_limit=2 * GIB), "memory", WARN, "2 GiB", "--memory"),
    (replace(FACTS, shared_memory=DiskSpace("/dev/shm", 64 * MIB, 64 * MIB)),
     "shared memory", BAD, "64 MiB", "--shm-size=2g"),
    (replace(FACTS, shared_memory=DiskSpace("/dev/shm", 8 * GIB, 1 * GIB)),
     "shared memory", WARN, "1 GiB are free", "ls -lS"),
    (replace(FACTS, shared_memory=DiskSpace("/dev/shm", None, None)), "shared memory", BAD, "no", "mount"),
    (replace(FACTS, open_files=ResourceLimit(1024, 1048576)), "open files", WARN, "1,024", "ulimit -n 65536"),
    (replace(FACTS, open_files=ResourceLimit(1024, 2048)),
     "open files", WARN, "1,024", "limits.d/nofile.conf"),
    (replace(FACTS, locked_memory=ResourceLimit(65536, None)), "locked memory", BAD, "64 KiB", "unlimited"),
    (replace(FACTS, scratch=DiskSpace("/tmp", 10 * GIB, 10 * MIB)), "scratch", BAD, "full", "du -xh /tmp"),
    (replace(FACTS, scratch=DiskSpace("/tmp", 10 * GIB, 2 * GIB)), "scratch", WARN, "2 GiB", "du -xh /tmp"),
    (replace(FACTS, scratch=DiskSpace("/no where", None, None)), "scratch", BAD, "/no where", "'/no where'"),
    (ExaminedNode("", None, FACTS, ClockOffset(-1.0, 0.1), {}), "time offset", WARN, "behind ours", "chrony"),
    (ExaminedNode("", None, FACTS, ClockOffset(7.0, 0.1), {}),
     "time offset", BAD, "7.00 ± 0.1 s ahead", "chrony"),
    (replace(FACTS, interface=replace(ETH0, mtu=1500)), "interface", BAD, "MTU of 1500", "dev eth0 mtu 9000"),
    (replace(FACTS, interface=replace(ETH0, speed_mbps=1000)), "interface", BAD, "1 Gb/s", "ethtool eth0"),
    (replace(FACTS, interface=replace(ETH0, state="down")), "interface", BAD, "is down", "dev eth0 up"),
    (replace(FACTS, interface=None), "interface", BAD, "no network interface", "ip -brief address"),
    (replace(FACTS, infiniband=(replace(PORT, state="INIT"),)), "InfiniBand", BAD, "none active", "ibstat"),
    (replace(FACTS, infiniband=(replace(PORT, rate="10 Gb/sec (1X SDR)"),)),
     "InfiniBand", BAD, "10 Gb/sec", "cables"),
    (replace(FACTS, infiniband=(PORT, replace(PORT, port=2, state="DOWN"))),
     "InfiniBand", WARN, "port 2 is DOWN", "ibstat mlx5_0"),
    (replace(FACTS, ports={29500: False, 29501: True}), "free ports", WARN, "29500", "ss -ltnp"),
    (replace(FACTS, ports={29500: False, 29501: False}), "free ports", BAD, "29500, 29501", "--ports"),
    (replace(FACTS, ports={29500: None}), "free ports", BAD, "not one that it has", "ip -brief"),
    (replace(FACTS, port_range=(60000, 60999)), "free ports", WARN, "60000 to 60999", "sysctl"),
    (replace(FACTS, dataset=NodeDataset("/data", False, 0, 0, None, None)),
     "dataset", BAD, "nothing at /data", "from n1: `rsync -a --delete /data/ n3:/data/`"),
    (replace(FACTS, dataset=NodeDataset("/data", True, 9, 9 * GIB, "bbbb", None)),
     "dataset", BAD, "9 files", "rsync"),
    (replace(FACTS, dataset=NodeDataset("/data", True, 0, 0, "cccc", None)),
     "dataset", BAD, "no file", "rsync"),
    (replace(FACTS, dataset=NodeDataset("/data", True, 0, 0, None, None, "Permission denied: '/data/x'")),
     "dataset", BAD, "Permission denied", "ls -lR /data"),
]  # fmt: skip


@pytest.mark.parametrize(("third", "check", "mark", "what", "fix"), SICK)
def test_what_is_wrong_with_one_node_is_said_of_it_with_a_fix(third, check, mark, what, fix):
    matching = [each for each in troubles(FACTS, FACTS, third) if (each.check, each.mark) == (check, mark)]
    assert [finding.node for finding in matching] == ["n3"]
    assert what in matching[0].what
    assert fix in matching[0].fix


def test_equal_and_healthy_nodes_are_green_in_every_check_that_has_something_to_say():
    all_findings = findings(FACTS, FACTS, FACTS)
    assert {finding.mark for finding in all_findings} == {FindingMark.OK}
    assert {finding.check for finding in all_findings} == {check.name for check in CHECKS} - {
        "reaches the others"
    }


def test_a_load_is_judged_by_the_number_of_processors():
    assert troubles(with_host(load=20.0)) == []


def test_one_node_alone_differs_from_nobody():
    assert troubles(FACTS) == []


def test_every_check_that_can_be_red_is_tried_here():
    assert {check for _, check, *_ in SICK} | {"reaches the others"} == {check.name for check in CHECKS}


def test_a_run_is_refused_for_what_makes_nodes_unequal_or_unreachable():
    assert [check.name for check in ESSENTIAL] == [
        "answers", "reaches the others",
        "environment hash", "framework versions", "interpreters", "Trainmark",
    ]  # fmt: skip


def test_a_limit_on_locked_memory_matters_only_with_infiniband():
    assert troubles(replace(FACTS, locked_memory=ResourceLimit(65536, 65536), infiniband=())) == []


def test_little_shared_memory_without_a_gpu_is_a_warning_unless_it_is_dockers():
    bare = replace(FACTS, gpus=(), gpu_cards=0)
    (small,) = troubles(replace(bare, shared_memory=DiskSpace("/dev/shm", GIB // 2, GIB // 2)))
    (dockers,) = troubles(replace(bare, shared_memory=DiskSpace("/dev/shm", 64 * MIB, 64 * MIB)))
    assert (small.mark, dockers.mark) == (FindingMark.WARN, FindingMark.BAD)


def test_an_offset_that_the_way_can_explain_is_not_held_against_a_node():
    assert troubles(ExaminedNode("", None, FACTS, ClockOffset(1.9, 1.5), {})) == []


@pytest.mark.parametrize(
    ("ahead", "wrong"),
    [
        ({"n1": 0.0, "n2": 0.0, "n3": 2.0}, "n3"),
        ({"n1": -2.0, "n2": 0.0, "n3": 0.0}, "n1"),
        ({"n1": 0.0, "n2": 2.0}, "n2"),
    ],
)
def test_a_clock_that_differs_from_its_peers_is_named_and_theirs_are_not(ahead, wrong):
    calls = tuple(
        NodeCall(one, other, "10.0.0.1", 29500, 0.0002, ahead[other] - ahead[one])
        for one in ahead
        for other in ahead
        if one != other
    )
    (finding,) = troubles(*[FACTS] * len(ahead), calls=calls)
    assert (finding.node, finding.mark) == (wrong, FindingMark.WARN)
    assert "its clock is 2.00 ± " in finding.what


def test_gpus_of_another_kind_may_be_set_otherwise():
    other = replace(GPU, index="1", name="Tesla T4", power_limit_w=70.0, clock_max_mhz=1590.0)
    assert troubles(replace(FACTS, gpus=(GPU, other))) == []


def test_where_the_others_do_not_tell_a_setting_no_command_is_made_of_it():
    silent = replace(GPU, clock_set_mhz=None)
    fixes = [each.fix for each in troubles(replace(FACTS, gpus=(silent, silent, replace(GPU, index="2"))))]
    assert fixes == ["on n1: compare `nvidia-smi -q -i 2` with that of the others"]


def test_what_a_device_does_not_tell_is_no_fault():
    silent = replace(GPU, **dict.fromkeys(
        ("temperature", "clock_set_mhz", "power_limit_w", "persistence", "ecc", "ecc_errors", "throttle")
    ))  # fmt: skip
    assert troubles(replace(FACTS, gpus=(silent,))) == []


def test_gpus_on_the_bus_that_nothing_drives_are_mentioned():
    (finding,) = troubles(replace(FACTS, gpus=()))
    assert (finding.check, finding.mark) == ("devices", FindingMark.WARN)


def test_a_blocked_direction_is_named_with_both_ends():
    calls = (
        NodeCall("n1", "n2", "10.0.0.2", 29500, trouble="no answer"),
        NodeCall("n2", "n1", "10.0.0.1", 29500, 0.0002, 0.0),
    )
    (finding,) = troubles(FACTS, FACTS, calls=calls)
    assert (finding.node, finding.peer, finding.mark) == ("n1", "n2", FindingMark.BAD)
    assert "cannot reach n2 at 10.0.0.2 port 29500: no answer" in finding.what
    assert "-s 10.0.0.1 -j ACCEPT" in finding.fix


def test_a_long_way_between_two_nodes_is_a_warning():
    calls = (
        NodeCall("n1", "n2", "10.0.0.2", 29500, 0.2, 0.0),
        NodeCall("n2", "n1", "10.0.0.1", 29500, 0.2, 0.0),
    )
    assert [(each.check, each.mark) for each in troubles(FACTS, FACTS, calls=calls)] == [
        ("reaches the others", FindingMark.WARN)
    ] * 2


@pytest.mark.parametrize(
    ("trouble", "fix"),
    [
        ("root@n3: Permission denied (publickey).", "ssh-copy-id n3"),
        ("Host key verification failed.", "fingerprint"),
        ("ssh: Could not resolve hostname n3: Name or service not known", "getent hosts n3"),
        ("ssh: connect to host n3 port 22: Connection refused", "sshd"),
        ("bash: line 1: python3: command not found", "install Python"),
        ("SyntaxError: invalid syntax", "too old"),
    ],
)
def test_the_fix_fits_what_kept_the_node_from_answering(trouble, fix):
    (finding,) = troubles(FACTS, FACTS, ExaminedNode("", trouble))
    assert fix in finding.fix


def test_a_name_cannot_break_out_of_the_command_that_is_to_be_pasted():
    odd = replace(ETH0, name="eth0;reboot", mtu=1500)
    (finding,) = troubles(FACTS, FACTS, replace(FACTS, interface=odd))
    assert "dev 'eth0;reboot' mtu 9000" in finding.fix


def test_of_two_that_are_as_common_the_earlier_one_is_the_usual():
    assert most_common({"a": 2, "b": 1}) == 2
    assert most_common({"a": 2, "b": 1, "c": 1}) == 1
    assert most_common({}) is None
