"""The reference that the fused step gives, and the share of it that a result has."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))

from sample_documents import GPU, result

from trainmark.measure.utilisation import is_fused, merge_reference_rates, reference_rates, share

FUSED = replace(GPU, device="NVIDIA H200", compiler="fused+cuda-graph")
EARLIER, LATER = "2025-11-13T08:00:00+00:00", "2025-11-14T08:00:00+00:00"


def fused(rate=12_000.0, **changes):
    return result(replace(FUSED, **changes), rate, spread=0.0)


def stock(rate, **changes):
    return result(replace(GPU, device="NVIDIA H200", **changes), rate, spread=0.0)


@pytest.mark.parametrize(
    ("compiler", "ours"),
    [("fused", True), ("fused+cuda-graph", True), ("compile", False), (None, False), ("unfused", False)],
)
def test_only_our_own_step_is_fused(compiler, ours):
    assert is_fused(replace(GPU, compiler=compiler)) is ours


def test_the_reference_is_the_fastest_batch():
    rates = reference_rates(
        [fused(11_000.0), fused(12_000.0, batch_per_device=512), fused(9_000.0)], LATER, "1.2"
    )
    assert [(each.rate, each.batch, each.version, each.taken) for each in rates] == [
        (12_000.0, 512, "1.2", LATER)
    ]


@pytest.mark.parametrize(
    "unfit",
    [
        {"compiler": "compile"},
        {"data": "images"},
        {"devices_per_node": 2},
        {"nodes": 2},
        {"device": None},
        {"axes": ()},
        {"precision": None},
        {"threads": 2},
    ],
)
def test_what_is_not_our_step_on_one_known_device_alone_gives_no_reference(unfit):
    assert reference_rates([fused(**unfit)], LATER) == ()


def test_amp_and_bf16_have_one_reference_and_fp32_its_own():
    rates = reference_rates(
        [fused(), fused(12_500.0, precision="bf16"), fused(2_000.0, precision="fp32")], LATER
    )
    assert {each.precision: each.rate for each in rates} == {"half": 12_500.0, "fp32": 2_000.0}


def test_of_two_reference_rates_the_faster_stays_though_it_is_older():
    old, new = reference_rates([fused(12_000.0)], EARLIER), reference_rates([fused(11_000.0)], LATER)
    assert merge_reference_rates(old, new) == merge_reference_rates(new, old) == old


def test_reference_rates_of_different_places_stay_side_by_side():
    old = reference_rates([fused(device="NVIDIA A100"), fused(axes=(("image_size", 160),)), fused()], EARLIER)
    new = reference_rates([fused(11_000.0)], LATER)
    assert len(merge_reference_rates(old, new)) == 3


def test_the_share_is_that_of_one_device():
    light = reference_rates([fused(12_000.0)], LATER)
    assert share(stock(6_000.0), light) == 0.5
    assert share(stock(36_000.0, nodes=2, devices_per_node=3), light) == 0.5


def test_a_result_on_real_images_has_a_share_too():
    assert share(stock(3_000.0, data="images", precision="bf16"), reference_rates([fused()], LATER)) == 0.25


@pytest.mark.parametrize(
    "other",
    [
        {"device": "NVIDIA A100"},
        {"axes": (("image_size", 160),)},
        {"precision": "fp32"},
        {"workload": "mine"},
        {"device": None},
        {"axes": ()},
    ],
)
def test_a_result_of_another_place_has_none(other):
    result_there = replace(stock(6_000.0), key=replace(FUSED, **other))
    assert share(result_there, reference_rates([fused()], LATER)) is None
