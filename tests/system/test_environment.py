from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from trainmark.machine.devices import read_devices
from trainmark.machine.environment import Environment, capture, fingerprint, to_dict
from trainmark.machine.network import Interface

SECTIONS = ["host", "devices", "topology", "libraries", "fabric", "software", "git", "container"]


@pytest.fixture(scope="module")
def here() -> Environment:
    return capture(Path(__file__).parent)


def test_the_json_has_every_section_and_survives_a_round_trip(here):
    sections = to_dict(here)
    assert list(sections) == SECTIONS
    assert json.loads(json.dumps(sections)) == sections


def test_this_machine_is_described(here):
    assert here.host.hostname == os.uname().nodename
    assert here.host.cpu.threads == os.cpu_count()
    assert here.software.python is not None
    assert here.software.packages["numpy"] is not None


def test_two_captures_have_one_fingerprint(here):
    assert fingerprint(capture()) == fingerprint(here)


def test_equal_nodes_of_a_cluster_have_one_fingerprint(here, nvml):
    first = replace(here, devices=read_devices(nvml))
    gpus = tuple(replace(gpu, uuid="GPU-else", pci_bus="0000:99:00.0") for gpu in first.devices.gpus)
    numa = tuple(replace(node, memory_bytes=2 << 40) for node in first.host.numa or ())
    memory = (first.host.memory_bytes or 0) + 4096
    veth = Interface("veth0a", "up", 10_000, 1500, physical=False)
    second = replace(
        first,
        host=replace(first.host, hostname="node2", memory_bytes=memory, numa=numa),
        devices=replace(first.devices, gpus=gpus),
        fabric=replace(first.fabric, interfaces=(*(first.fabric.interfaces or ()), veth)),
        git=None,
    )
    assert fingerprint(second) == fingerprint(first)


def test_a_lower_power_limit_changes_the_fingerprint(here, nvml):
    first = replace(here, devices=read_devices(nvml))
    capped = tuple(replace(gpu, power_limit_watts=250.0) for gpu in first.devices.gpus)
    assert fingerprint(replace(first, devices=replace(first.devices, gpus=capped))) != fingerprint(first)


def test_another_framework_version_changes_the_fingerprint(here):
    software = replace(here.software, frameworks={**here.software.frameworks, "pytorch": "1.5.0"})
    assert fingerprint(replace(here, software=software)) != fingerprint(here)
