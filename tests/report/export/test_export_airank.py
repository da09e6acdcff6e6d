"""AI-Rank's submission tree."""

from __future__ import annotations

import json
import re

import pytest
from exported_runs import exported, odd_run, run_with_events

# What docs/hardware/train.md of AI-Rank demands of system_information.json.
DEMANDED = {
    "accelerator_memory_capacity", "accelerator_name", "accelerators_per_node", "host_memory_capacity",
    "host_processor_core_count", "host_processor_name", "host_processors_per_node", "host_storage_capacity",
    "host_storage_type", "number_of_nodes", "operating_system", "software_stack", "submitter",
    "hardware_name", "hardware_type",
}  # fmt: skip
LINE = re.compile(r"- AI-Rank-log (\d+\.\d{3}) (\w+)(?::([\d.]+)([a-z/]+))?")


@pytest.fixture
def system(run, tmp_path):
    return exported(run, "airank", tmp_path / "out") / "My-Lab" / "Linux"


def test_the_tree_is_submitter_system_model_with_code_data_and_log(system):
    assert {str(path.relative_to(system)) for path in system.rglob("*") if path.is_file()} == {
        "system_information.json",
        "ResNet50_pytorch/code/README.md",
        "ResNet50_pytorch/data/README.md",
        "ResNet50_pytorch/log/GPUx1.log",
        "ResNet50_pytorch/log/GPUx8.log",
    }


def test_the_system_is_told_in_the_fields_demanded_and_the_unknown_is_null(system):
    fields = json.loads((system / "system_information.json").read_text())
    assert set(fields) == DEMANDED
    assert (fields["operating_system"], fields["submitter"], fields["accelerators_per_node"]) == (
        "Linux",
        "My Lab",
        8,
    )
    assert fields["accelerator_name"] is None


def test_a_log_is_the_median_trial_with_its_throughput(system):
    lines = (system / "ResNet50_pytorch" / "log" / "GPUx1.log").read_text().splitlines()
    begin, finish, used, ips = (LINE.fullmatch(line).groups() for line in lines)
    assert (begin[1], finish[1], used[1], ips[1]) == (
        "test_begin",
        "test_finish",
        "total_use_time",
        "avg_ips",
    )
    assert float(used[2]) == pytest.approx(float(finish[0]) - float(begin[0]), abs=2e-3)
    assert ips[2:] == ("101.000", "images/sec")


def test_a_log_claims_no_accuracy_and_the_page_beside_it_says_why(system):
    model = system / "ResNet50_pytorch"
    assert "eval_accuracy" not in (model / "log" / "GPUx8.log").read_text()
    readme = (model / "code" / "README.md").read_text()
    assert "nothing was trained to a target accuracy" in readme
    assert "trainmark run quick" in readme


def test_names_with_separators_stay_inside_the_tree(tmp_path):
    run = odd_run(tmp_path / "runs", "odd", workload="../../net", framework="a/b")
    out = exported(run, "airank", tmp_path / "out", "../../Lab\n")
    (log,) = out.rglob("*.log")
    assert log.relative_to(out).parts == ("Lab", "Linux", "net_a-b", "log", "GPUx1.log")


def test_as_many_devices_on_more_nodes_do_not_overwrite_each_other(tmp_path):
    run = run_with_events(tmp_path / "runs", "both", {"1n4g": [400.0], "2n2g": [380.0]})
    logs = exported(run, "airank", tmp_path / "out") / "My-Lab" / "Linux" / "ResNet50_pytorch" / "log"
    assert {
        log.name: float(re.search(r"avg_ips:([\d.]+)", log.read_text())[1]) for log in logs.iterdir()
    } == {
        "GPUx4.log": 400.0,
        "GPUx4-2n2g.log": 380.0,
    }
