"""One simulated step: buckets, all-reduce, overlap and the slowest rank."""

import math

import pytest

from trainmark.base.errors import UserError
from trainmark.forecast.fabric import (
    FabricModel,
    Size,
    fabric_of_record,
    hierarchical,
    ring,
    tells_between_nodes,
    tree,
)
from trainmark.forecast.step import (
    GradientBucket,
    bert_base,
    even_layers,
    expected_largest,
    fill_buckets,
    layers_of,
    measured_buckets,
    simulate_step,
    slowest_rank,
)

FABRIC = FabricModel(bandwidth=10e9, latency=1e-5, intra_bandwidth=100e9, intra_latency=1e-6)
MEGABYTE = 1e6


def test_the_layers_of_resnet50_have_its_parameters_and_work():
    layers = list(layers_of("resnet50"))
    assert sum(layer.parameters for layer in layers) == 25_557_032
    assert sum(layer.work for layer in layers) == 4_089_184_256


def test_the_layers_of_bert_base_have_its_parameters():
    assert sum(layer.parameters for layer in bert_base()) == 110_106_428


@pytest.mark.parametrize("width", [2, 4])
def test_buckets_hold_every_gradient_once_and_the_last_ends_the_step(width):
    buckets = fill_buckets(layers_of("resnet50"), width)
    assert sum(bucket.bytes for bucket in buckets) == width * 25_557_032
    assert [bucket.ready for bucket in buckets] == sorted(bucket.ready for bucket in buckets)
    assert buckets[-1].ready == 1


def test_the_first_bucket_holds_the_last_layers_and_so_comes_early():
    first = fill_buckets(layers_of("resnet50"))[0]
    assert first.bytes >= 25 * 2**20
    assert 1 / 3 < first.ready < 0.45


def test_a_model_of_which_only_the_size_is_known_has_that_size():
    assert sum(layer.parameters for layer in even_layers(1_000_003)) == 1_000_003


def test_a_ring_costs_what_the_formula_says():
    assert ring(Size(2, 8), MEGABYTE, FABRIC) == pytest.approx(2 * 15 / 16 * 1e6 / 10e9 + 30 * 1e-5)


def test_a_tree_waits_for_fewer_messages_than_a_ring():
    assert tree(Size(512, 8), 1.0, FABRIC) == pytest.approx(2 * (9 * 1e-5 + 7 * 1e-6), rel=1e-4)
    assert tree(Size(512, 8), MEGABYTE, FABRIC) < ring(Size(512, 8), MEGABYTE, FABRIC)


def test_a_hierarchical_reduction_sends_each_byte_of_a_node_over_its_network_once_a_direction():
    inside = 2 * (7 / 8 * 1e6 / 100e9 + 7e-6)
    assert hierarchical(Size(1, 8), MEGABYTE, FABRIC) == pytest.approx(inside)
    across = 2 * 3 / 4 * 1e6 / 10e9 + 6e-5
    assert hierarchical(Size(4, 8), MEGABYTE, FABRIC) == pytest.approx(inside + across)


@pytest.mark.parametrize("reduce", [ring, tree, hierarchical])
def test_one_device_has_nobody_to_exchange_with(reduce):
    assert reduce(Size(1, 1), MEGABYTE, FABRIC) == 0


def test_what_is_reduced_during_the_backward_pass_is_hidden():
    step = simulate_step([GradientBucket(0.5, 1.0)], 1.0, lambda count: 0.2)
    assert (step.hidden, step.exposed) == (pytest.approx(0.2), 0)


def test_what_comes_with_the_last_gradient_is_exposed():
    step = simulate_step([GradientBucket(1.0, 1.0)], 1.0, lambda count: 0.2)
    assert (step.hidden, step.exposed) == (0, pytest.approx(0.2))


def test_a_bucket_waits_until_the_one_before_it_is_through():
    step = simulate_step([GradientBucket(0.5, 1.0), GradientBucket(0.6, 1.0)], 1.0, lambda count: 0.4)
    assert step.hidden == pytest.approx(0.5)
    assert step.exposed == pytest.approx(0.3)


def test_reported_buckets_count_from_the_start_of_the_backward_pass():
    facts = {
        "forward_seconds": 0.1,
        "backward_seconds": 0.3,
        "gradient_buckets": [{"bytes": 8, "ready_seconds": 0.3}, {"bytes": 4, "ready_seconds": 0.1}],
    }
    assert measured_buckets(facts) == (
        GradientBucket(pytest.approx(0.5), 4),
        GradientBucket(pytest.approx(1.0), 8),
    )


def test_reported_buckets_without_times_of_the_passes_end_with_the_last():
    assert measured_buckets({"gradient_buckets": [{"bytes": 8, "ready_seconds": 0.2}]}) == (
        GradientBucket(1.0, 8),
    )
    assert measured_buckets({}) == ()


def test_reported_buckets_that_are_none_are_refused():
    with pytest.raises(UserError, match="gradient_buckets cannot be read"):
        measured_buckets({"gradient_buckets": [{"bytes": 8}]})


def test_the_mean_of_the_largest_of_two_normal_values_is_one_over_root_pi():
    assert expected_largest(1) == pytest.approx(0, abs=1e-9)
    assert expected_largest(2) == pytest.approx(1 / math.sqrt(math.pi), rel=1e-6)
    assert expected_largest(512) == pytest.approx(3.04, abs=0.01)


def test_more_ranks_have_a_slower_slowest_one_and_always_the_same():
    assert slowest_rank(1, 0.05) == slowest_rank(4096, 0.0) == 1
    assert 1 < slowest_rank(8, 0.05) < slowest_rank(64, 0.05) < slowest_rank(4096, 0.05) < 1.3
    assert slowest_rank.__wrapped__(64, 0.05) == slowest_rank(64, 0.05)


def link(same_node, rate, latency=2e-6):
    return {"from": 0, "to": 1, "same_node": same_node, "latency_seconds": latency, "bytes_per_second": rate}


def test_measured_links_replace_what_is_usual_for_their_kind():
    fabric = fabric_of_record({"links": [link(True, 50e9), link(True, None)]}, FABRIC, "ring")
    assert (fabric.intra_bandwidth, fabric.bandwidth, fabric.latency) == (50e9, 10e9, 1e-5)


@pytest.mark.parametrize(
    "algorithm, reduce", [("ring", ring), ("tree", tree), ("hierarchical", hierarchical)]
)
def test_a_measured_reduction_across_nodes_takes_as_long_again(algorithm, reduce):
    record = {
        "links": [link(False, 11e9)],
        "allreduce": [{"ranks": 4, "nodes": 2, "bytes": 1e8, "seconds": 0.05}],
    }
    fabric = fabric_of_record(record, FabricModel(1.0, 0.0, math.inf, 0.0), algorithm)
    assert reduce(Size(2, 2), 1e8, fabric) == pytest.approx(0.05, rel=0.01)


def test_a_fabric_of_one_node_tells_nothing_between_nodes():
    assert not tells_between_nodes({"links": [link(True, 50e9)]})
    assert tells_between_nodes({"links": [link(False, 50e9)]})


def test_a_record_that_is_no_fabric_is_refused():
    with pytest.raises(UserError, match=r"fabric\.json cannot be read"):
        fabric_of_record({"links": [{}]}, FABRIC, "ring")
