"""Where a result stands against what others published."""

import pytest

from trainmark.logs.ledger import load, load_of, standing
from trainmark.logs.ledger.entry import device_family
from trainmark.logs.ledger.load import parse
from trainmark.logs.ledger.standing import StandingDifference
from trainmark.measure.key import Key
from trainmark.pages.standing import standing_line

ENTRIES = parse(
    """\
source: {title: A report, page: https://example.org/report, confidence: published}
shared: {workload: resnet50, framework: mxnet, layout: NHWC, data: DALI}
tables:
  - columns: [device, precision, batch_per_device, nodes, devices_per_node, throughput]
    rows:
      - [NVIDIA A100-SXM4-40GB, amp, 256, 1, 1, 2000]
      - [NVIDIA A100-SXM4-80GB, amp, 512, 1, 1, 2500]
      - [NVIDIA A100-SXM4-80GB, fp16, 512, 1, 8, 24000]
      - [NVIDIA A100-SXM4-80GB, tf32, 512, 1, 1, 1000]
      - [NVIDIA A100 80GB PCIe, amp, 512, 1, 1, 9000]
      - [NVIDIA A100-SXM4-80GB, amp, ~, ~, ~, 9999]
""",
    "report.yaml",
)
OURS = Key(
    workload="resnet50",
    framework="pytorch",
    framework_version="2.11",
    axes=(("image_size", 224),),
    precision="amp",
    loss_scale="dynamic",
    layout="NHWC",
    data="synthetic",
    batch_per_device=256,
    device="NVIDIA A100-SXM4-80GB",
)


def changed(**fields):
    return Key(**{**OURS.__dict__, **fields})


def test_the_best_is_the_fastest_with_as_many_devices():
    comparison = standing(OURS, 2250, ENTRIES)
    assert (comparison.best.row.throughput, comparison.ratio, comparison.per_device) == (2500, 0.9, False)


def test_what_gets_more_out_of_each_device_with_another_number_of_them_is_told_too():
    assert standing(OURS, 2250, ENTRIES).ceiling.row.throughput == 24000
    assert standing(changed(devices_per_node=8), 24000, ENTRIES).ceiling is None


def test_another_number_of_devices_is_compared_by_one_device():
    comparison = standing(changed(devices_per_node=4), 6000, ENTRIES)
    assert (comparison.best.row.throughput, comparison.ratio, comparison.per_device) == (24000, 0.5, True)
    assert StandingDifference("topology", "1n4g", "1n8g") in comparison.differences


def test_the_differences_are_those_that_both_sides_state():
    assert standing(OURS, 2250, ENTRIES).differences == (
        StandingDifference("framework", "pytorch", "mxnet"),
        StandingDifference("data", "synthetic", "DALI"),
        StandingDifference("batch_per_device", "256", "512"),
    )


def test_what_one_side_does_not_state_is_named_and_not_called_a_difference():
    assert standing(OURS, 2250, ENTRIES).unstated == ("loss_scale", "compiler", "image_size")


def test_versions_are_compared_only_within_a_framework():
    assert standing(changed(framework="mxnet"), 1, ENTRIES).unstated[0] == "framework_version"


def test_bf16_is_compared_with_other_16_bit_and_the_difference_told():
    comparison = standing(changed(precision="bf16", loss_scale=None), 2250, ENTRIES)
    assert StandingDifference("precision", "bf16", "amp") in comparison.differences


@pytest.mark.parametrize(
    "fields",
    [
        {"precision": "fp32"},
        {"precision": None},
        {"precision": "fp8"},
        {"device": "NVIDIA H200"},
        {"device": None},
        {"workload": "bert-base"},
    ],
    ids=str,
)
def test_what_nothing_is_comparable_with_has_no_standing(fields):
    assert standing(changed(**fields), 1000, ENTRIES) is None
    assert "nothing comparable" in standing_line(changed(**fields), None)


def test_our_own_figures_are_no_outside_reference():
    h200 = changed(device="NVIDIA H200")
    own = [entry for entry in load() if entry.origin.kind == "trainmark"]
    assert own and standing(h200, 6000, own) is None
    assert standing(h200, 6000, load()).best.source == "milabench"


def test_the_line_gives_figure_source_share_and_differences():
    assert standing_line(OURS, standing(OURS, 2250, ENTRIES)) == (
        "best published: 2,500.0 img/s (report, mxnet); this is 90 % of it;"
        " theirs: framework mxnet (here pytorch), data DALI (here synthetic), batch 512 (here 256);"
        " not stated on one side: loss scale, compiler, image size;"
        " most from one device: 3,000.0 img/s a device of 1n8g (report, mxnet)"
    )


@pytest.mark.parametrize(
    ("device", "name"),
    [
        ("Tesla V100-SXM2-16GB", "v100"),
        ("Tesla V100-SXM3-32GB-H", "v100 h"),
        ("NVIDIA A100 80GB PCIe", "a100 pcie"),
        ("A100-PCIE-40GB", "a100 pcie"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA H100 NVL", "h100 nvl"),
        ("NVIDIA GeForce RTX 4090 D", "rtx 4090 d"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "a100 mig 1g.5gb"),
    ],
)
def test_a_family_leaves_out_the_maker_and_the_memory_and_keeps_what_changes_the_speed(device, name):
    assert device_family(device) == name


@pytest.mark.parametrize("workloads", [{"resnet50"}, {"bert-base", "resnet50"}, {"program"}, set()])
def test_entries_of_some_workloads_are_those_of_the_whole_ledger(workloads):
    assert load_of(workloads) == tuple(entry for entry in load() if entry.row.workload in workloads)
