"""The program that is sent to a node: what it tells, and with how little it can do so."""

from __future__ import annotations

import ast
import shutil
import socket
import sys
from pathlib import Path

import pytest
from local_nodes import LocalNode, LocalNodes, oldest_python
from smi import BROKEN, path_with_smi

from trainmark.launch.asking import Reply
from trainmark.launch.bundle import AGENT
from trainmark.machine import data_on_node, facts_on_node, network, reach
from trainmark.machine.diagnosis import DATA_PROGRAM, FACTS
from trainmark.machine.examination import facts_of, node_of, offset_of
from trainmark.machine.facts_on_node import SlowInterpreterError, installed_packages, read_installation
from trainmark.machine.node_program import PACKAGE, module_sources, program
from trainmark.machine.nvidia_smi import Query
from trainmark.machine.reading import ipv6_addresses

FILES = sorted(
    PACKAGE / f"{name.replace('.', '/')}.py"
    for name in {
        source for entry in (FACTS, DATA_PROGRAM, reach.PROGRAM, AGENT) for source in module_sources(entry)
    }
)
PROGRAMS = {"facts": program(FACTS), "data": program(DATA_PROGRAM), "meeting": program(reach.PROGRAM)}


def tell(question=None, **node):
    (reply,) = LocalNodes(LocalNode("n1", "127.0.0.1", **node))(PROGRAMS["facts"], [question or {}], 60)
    assert reply.trouble is None
    return reply.answer


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.name)
def test_what_is_sent_needs_only_the_standard_library(file):
    modules = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        for name in (
            [alias.name for alias in node.names] if isinstance(node, ast.Import)
            else [node.module] if isinstance(node, ast.ImportFrom) else []
        )
    }  # fmt: skip
    assert modules - {"trainmark"} <= sys.stdlib_module_names


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_sent_fits_on_a_command_line(name):
    # Linux takes 128 KiB in one argument.
    assert len(PROGRAMS[name].encode()) < 100_000


def test_an_interpreter_that_is_slow_is_not_taken_for_absent(tmp_path):
    slow = tmp_path / "python"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    with pytest.raises(SlowInterpreterError, match="did not answer within"):
        read_installation(str(slow), limit=0.2)
    assert read_installation(str(tmp_path / "nowhere")) is None


def test_what_is_sent_runs_with_python_3_8():
    answer = tell({"interpreters": [sys.executable], "ports": [29500]}, python=oldest_python())
    assert facts_of(answer).host.python.startswith("3.8.")


def test_everything_told_is_understood():
    question = {"interpreters": [sys.executable, "/no/python"], "ports": [29500]}
    (reply,) = LocalNodes(LocalNode("n1", "127.0.0.1"))(PROGRAMS["facts"], [question], 60)
    node = node_of(reply)
    assert node.trouble is None
    assert node.facts.host.cpus >= 1
    assert node.facts.interpreters["/no/python"] is None
    assert "pytest" in node.facts.interpreters[sys.executable].packages
    assert abs(node.offset.seconds) <= node.offset.uncertainty


def test_an_answer_in_another_form_is_the_trouble_of_that_node_alone():
    (reply,) = LocalNodes(LocalNode("n1", "127.0.0.1"))("print('{\"host\": 1}')", [{}], 60)
    assert "not understood" in node_of(reply).trouble


@pytest.mark.parametrize(
    "changes", [{"address": "10.0.0.1; reboot"}, {"gpus": [{"index": "0; reboot", "name": "A"}]}]
)
def test_an_answer_that_would_put_a_command_into_a_fix_is_not_understood(changes):
    answer = {**tell(), **changes}
    assert "not understood" in node_of(Reply("n1", answer, None, 0.0, 1.0)).trouble


def test_limits_are_those_of_the_process_that_was_started():
    if shutil.which("prlimit") is None:
        pytest.skip("no prlimit here")
    facts = facts_of(tell(before=("prlimit", "--nofile=512:1024", "--memlock=65536:65536")))
    assert (facts.open_files.soft, facts.open_files.hard) == (512, 1024)
    assert facts.locked_memory.soft == 65536


def test_nvidia_smi_is_asked_again_without_the_fields_that_its_driver_does_not_know(tmp_path):
    answer = facts_of(tell(environment={"PATH": path_with_smi(tmp_path)}))
    (gpu,) = answer.gpus
    assert (gpu.index, gpu.driver, gpu.clock_max_mhz) == ("0", "418.87.01", 1530.0)
    assert gpu.throttle == "0x0000000000000001"
    assert (gpu.clock_set_mhz, gpu.ecc_errors, gpu.mig) == (None, None, None)
    (process,) = answer.gpu_processes
    assert (process.pid, process.name, process.memory_mib) == (4711.0, "python", None)


def test_what_nvidia_smi_says_instead_of_an_answer_is_told(tmp_path):
    answer = facts_of(tell(environment={"PATH": path_with_smi(tmp_path, BROKEN)}))
    assert answer.gpus == ()
    assert "couldn't communicate" in answer.gpu_trouble


QUERY = Query("gpu", "index temperature")


@pytest.mark.parametrize("value", ["[N/A]", "N/A", "[Not Supported]", "[Unknown Error]", "", "Unknown"])
def test_a_value_that_a_device_does_not_give_is_left_out(value):
    assert QUERY.rows(f"0, {value}\n") == [{"index": "0"}]


def test_a_line_that_is_no_row_is_no_device():
    assert QUERY.rows("No devices were found\n") == []


def environment(folder: Path, *packages: tuple[str, str, str]) -> list[str]:
    """A site-packages with these names, versions and RECORDs."""
    for name, version, record in packages:
        info = folder / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "RECORD").write_text(record)
    return [str(folder)]


def test_the_hash_of_an_environment_is_of_what_is_installed_and_not_of_how(tmp_path):
    file = "numpy/core.py,sha256=abc,10\n"
    by_pip = (
        f"{file}../../../bin/f2py,sha256=1,9\nnumpy/__pycache__/core.pyc,,\n"
        "numpy-2.0.dist-info/INSTALLER,sha256=2,4\n"
    )
    packages, one = installed_packages("3.11.7", environment(tmp_path / "a", ("numpy", "2.0", by_pip)))
    _, other = installed_packages("3.11.7", environment(tmp_path / "b", ("numpy", "2.0", file)))
    assert packages == {"numpy": "2.0"}
    assert one == other


@pytest.mark.parametrize(
    ("python", "package"),
    [
        ("3.11.8", ("numpy", "2.0", "numpy/core.py,sha256=abc,10\n")),
        ("3.11.7", ("numpy", "2.1", "numpy/core.py,sha256=abc,10\n")),
        ("3.11.7", ("numpy", "2.0", "numpy/core.py,sha256=xyz,10\n")),
    ],
)
def test_another_python_version_or_file_is_another_hash(tmp_path, python, package):
    first = ("numpy", "2.0", "numpy/core.py,sha256=abc,10\n")
    _, one = installed_packages("3.11.7", environment(tmp_path / "a", first))
    _, other = installed_packages(python, environment(tmp_path / "b", package))
    assert one != other


def test_a_package_that_an_earlier_folder_hides_does_not_count(tmp_path):
    paths = [
        *environment(tmp_path / "a", ("Foo_Bar", "1", "")),
        *environment(tmp_path / "b", ("foo.bar", "2", "")),
    ]
    assert installed_packages("3.11.7", paths)[0] == {"foo-bar": "1"}


def test_a_gpu_on_the_bus_is_counted_by_vendor_and_class(tmp_path):
    for name, vendor, kind in (
        ("0", "0x10de", "0x030200"),
        ("1", "0x10de", "0x040300"),
        ("2", "0x8086", "0x030000"),
    ):
        device = tmp_path / "sys/bus/pci/devices" / name
        device.mkdir(parents=True)
        (device / "vendor").write_text(vendor + "\n")
        (device / "class").write_text(kind + "\n")
    assert facts_on_node.nvidia_cards(tmp_path) == 1


NETWORK = [
    {"name": "eth0", "addresses": ["10.0.0.1"]},
    {"name": "ib0", "addresses": ["10.1.0.1"]},
    {"name": "lo", "addresses": ["127.0.0.1"]},
]


@pytest.mark.parametrize(
    ("name", "address", "default", "chosen"),
    [
        ("ib0", "10.0.0.1", "eth0", "ib0"),
        (None, "10.1.0.1", "eth0", "ib0"),
        (None, None, "eth0", "eth0"),
        (None, None, None, "eth0"),
        ("ib7", None, "eth0", None),
    ],
)
def test_the_interface_is_the_one_named_else_the_addresss_else_the_default_routes(
    name, address, default, chosen
):
    interface = network.chosen_interface(NETWORK, name, address, default)
    assert (interface and interface["name"]) == chosen


def test_an_address_of_one_link_only_is_no_address_for_peers(tmp_path):
    file = tmp_path / "proc/net/if_inet6"
    file.parent.mkdir(parents=True)
    file.write_text(
        "fe80000000000000000000fffe000001 02 40 20 80     eth0\n"
        "20010db8000000000000000000000001 02 40 00 80     eth0\n"
    )
    assert ipv6_addresses(tmp_path) == {"eth0": ["2001:db8::1"]}


def test_a_port_at_which_somebody_listens_is_not_free():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert network.is_free("127.0.0.1", port) is False
        assert network.is_free("127.0.0.2", port) is True


def test_of_an_address_that_is_not_its_own_a_node_cannot_tell():
    assert network.is_free("192.0.2.77", 29500) is None


@pytest.fixture
def data(tmp_path) -> Path:
    folder = tmp_path / "data"
    (folder / "train").mkdir(parents=True)
    (folder / "train" / "a.jpg").write_bytes(b"aaaa")
    (folder / "b.jpg").write_bytes(b"bb")
    return folder


def test_a_dataset_is_told_by_number_size_and_names_of_its_files(data):
    facts = data_on_node.dataset(str(data), deep=False)
    assert (facts["exists"], facts["files"], facts["bytes"], facts["contents"]) == (True, 2, 6, None)
    (data / "b.jpg").rename(data / "c.jpg")
    assert data_on_node.dataset(str(data), deep=False)["names"] != facts["names"]


def test_only_a_deep_look_sees_a_changed_byte(data):
    before = data_on_node.dataset(str(data), deep=True)
    (data / "b.jpg").write_bytes(b"bc")
    after = data_on_node.dataset(str(data), deep=True)
    assert before["names"] == after["names"]
    assert before["contents"] != after["contents"]


def test_a_folder_that_links_to_itself_is_entered_once(data):
    (data / "train" / "up").symlink_to(data)
    assert data_on_node.dataset(str(data), deep=False)["files"] == 2


def test_a_file_that_cannot_be_read_is_told_and_the_rest_of_the_answer_stays():
    # It exists, but nothing lies at its beginning.
    facts = data_on_node.dataset("/proc/self/mem", deep=True)
    assert facts["exists"]
    assert "Input/output error" in facts["trouble"]


def test_a_dataset_may_be_one_file(data):
    assert data_on_node.dataset(str(data / "b.jpg"), deep=True)["files"] == 1


def test_the_way_there_and_back_bounds_the_offset():
    # The clock is 3 s ahead, the way there takes 0.4 s and that back 0.2 s, and the node works for 5 s.
    offset = offset_of(sent=100.0, began=103.4, ended=108.4, received=105.6)
    assert offset.uncertainty == pytest.approx(0.3)
    assert abs(offset.seconds - 3.0) <= offset.uncertainty
