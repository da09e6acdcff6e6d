from __future__ import annotations

import pytest

from trainmark.machine.host import NumaNode, read_host

XEON = "processor : 0\nmodel name\t: Intel(R) Xeon(R) Gold 5118 CPU  @ 2.30GHz\nflags\t\t: fpu sse2{}\n"


def two_sockets() -> dict[str, str]:
    files = {}
    for cpu, (socket, core) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1), (0, 0), (0, 1), (1, 0), (1, 1)]):
        folder = f"sys/devices/system/cpu/cpu{cpu}"
        files[f"{folder}/topology/physical_package_id"] = f"{socket}\n"
        files[f"{folder}/topology/core_id"] = f"{core}\n"
        files[f"{folder}/cpufreq/scaling_governor"] = "performance\n"
    return files


def test_cores_of_two_sockets_with_the_same_number_are_two_cores(plant):
    cpu = read_host(plant(two_sockets())).cpu
    assert (cpu.sockets, cpu.cores, cpu.threads, cpu.governor) == (2, 4, 8, "performance")


def test_cores_that_sys_does_not_list_are_counted_by_socket(plant):
    cpus = [(0, 0), (0, 1), (1, 0), (1, 1)]
    rows = [f"processor\t: {n}\nphysical id\t: {s}\ncpu cores\t: 2\n" for n, (s, _) in enumerate(cpus)]
    cpu = read_host(plant({"proc/cpuinfo": "\n".join(rows)})).cpu
    assert (cpu.sockets, cpu.cores) == (None, 4)


def test_the_cpu_model_is_read_with_its_spaces_made_single(plant):
    host = read_host(plant({"proc/cpuinfo": XEON.format("")}))
    assert host.cpu.model == "Intel(R) Xeon(R) Gold 5118 CPU @ 2.30GHz"


@pytest.mark.parametrize(
    ("part", "model"),
    [("0xd0c", "Neoverse-N1"), ("0xd4f", "Neoverse-V2"), ("0xfff", "Arm implementer 0x41 part 0xfff")],
)
def test_an_arm_processor_has_the_name_of_its_part_number(part, model, plant):
    host = read_host(plant({"proc/cpuinfo": f"CPU implementer\t: 0x41\nCPU part\t: {part}\n"}))
    assert host.cpu.model == model


@pytest.mark.parametrize(
    ("file", "value", "turbo"),
    [
        ("intel_pstate/no_turbo", "1", False),
        ("intel_pstate/no_turbo", "0", True),
        ("cpufreq/boost", "0", False),
        ("cpufreq/boost", "1", True),
    ],
)
def test_turbo_is_understood_in_both_spellings(plant, file, value, turbo):
    assert read_host(plant({f"sys/devices/system/cpu/{file}": value})).cpu.turbo is turbo


def test_memory_and_numa_nodes_are_counted_in_bytes_and_in_order(plant):
    files = {"proc/meminfo": "MemTotal:       395000000 kB\nMemFree: 1 kB\n"}
    for node in (0, 2, 10):
        files[f"sys/devices/system/node/node{node}/cpulist"] = f"{node}-{node + 1}\n"
        files[f"sys/devices/system/node/node{node}/meminfo"] = f"Node {node} MemTotal:       1024 kB\n"
    host = read_host(plant(files))
    assert host.memory_bytes == 395_000_000 * 1024
    assert host.numa == tuple(NumaNode(node, f"{node}-{node + 1}", 1 << 20) for node in (0, 2, 10))


def test_a_cloud_vendors_bare_metal_is_not_called_virtual(plant):
    files = {"proc/cpuinfo": XEON.format(""), "sys/class/dmi/id/sys_vendor": "Amazon EC2\n"}
    assert read_host(plant(files)).virtualisation == "none"


def test_a_virtual_machine_is_named_by_its_vendor(plant):
    files = {"proc/cpuinfo": XEON.format(" hypervisor"), "sys/class/dmi/id/sys_vendor": "QEMU\n"}
    assert read_host(plant(files)).virtualisation == "kvm"


def test_the_system_is_named_as_it_names_itself(plant):
    assert (
        read_host(plant({"etc/os-release": 'PRETTY_NAME="Ubuntu 16.04.4 LTS"\n'})).system
        == "Ubuntu 16.04.4 LTS"
    )


def test_a_machine_without_proc_and_sys_is_described_by_what_is_left(plant):
    host = read_host(plant({}))
    assert (host.numa, host.cpu.sockets, host.cpu.governor, host.cpu.turbo) == (None, None, None, None)
    assert host.cpu.threads and host.memory_bytes
