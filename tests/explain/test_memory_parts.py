"""What held the memory at the peak, from what a program observed."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmark.explain.memory import COMPILED, CROSS_ENTROPY, OUTSIDE, in_bytes, memory, refusal, savings
from trainmark.view.catalogue import translated

GIB = 2**30
MODULES = ("network.blocks.0.up", "network.blocks.1.norm", "network.norm", "", OUTSIDE)
# A step of 20 GiB: half of it activations of 10 blocks.
STEP = {
    "device": "cuda:0",
    "phase": "forward",
    "peak": 20 * GIB,
    "reserved": 22 * GIB,
    "parameters": 2 * GIB,
    "gradients": 0,
    "optimizer": 4 * GIB,
    "batch_bytes": 0,
    "saved_tensors": 100,
    "activations": [
        {"module": f"network.blocks.{index}.up", "type": "Linear", "bytes": GIB} for index in range(10)
    ]
    + [{"module": "", "type": "cross_entropy", "bytes": GIB}],
    "blocks": [
        {
            "pattern": "network.blocks.*",
            "type": "Block",
            "count": 10,
            "bytes": 10 * GIB,
            "largest": GIB,
            "inputs": 2 * GIB,
        }
    ],
}

sizes = st.integers(0, 2**40)
observations = st.fixed_dictionaries(
    {
        "peak": st.integers(1, 2**40),
        "reserved": sizes | st.none(),
        **dict.fromkeys(("parameters", "buffers", "gradients", "optimizer", "buckets", "batch_bytes"), sizes),
        "graph_pools": sizes,
        "activations": st.lists(
            st.fixed_dictionaries(
                {"module": st.sampled_from(MODULES), "type": st.just("Linear"), "bytes": sizes}
            )
        ),
        "blocks": st.lists(
            st.fixed_dictionaries(
                {"pattern": st.just("network.blocks.*"), "bytes": sizes, "largest": sizes, "inputs": sizes}
            ),
            max_size=2,
        ),
    }
)


@given(observations)
def test_all_but_fragmentation_add_up_to_the_peak_and_none_is_negative(observed):
    result = memory(observed)
    inside = [part.bytes for part in result.parts if part.kind != "fragmentation"]
    assert sum(inside) == observed["peak"]
    assert all(part.bytes > 0 for part in result.parts)


@given(observations)
def test_fragmentation_is_what_is_reserved_beyond_the_peak(observed):
    result = memory(observed)
    whole = sum(part.bytes for part in result.parts)
    assert whole == max(observed["peak"], observed["reserved"] or 0)


@given(observations, st.integers(1, 64))
def test_only_what_frees_two_percent_of_the_peak_is_suggested_the_most_first(observed, ranks):
    freed = [saving.bytes for saving in savings(observed, ranks)]
    assert all(size >= 0.02 * observed["peak"] for size in freed)
    assert freed == sorted(freed, reverse=True)


@given(observations, st.sampled_from([COMPILED, CROSS_ENTROPY, "Linear"]), st.booleans(), st.integers(1, 64))
def test_what_is_said_of_holders_and_of_what_frees_them_is_in_chinese(observed, kind, on_cpu, ranks):
    observed["activations"].append({"module": "network.head", "type": kind, "bytes": observed["peak"] // 4})
    observed |= {"device": "cpu" if on_cpu else "cuda:0", "update_peak": observed["peak"] // 2}
    result = memory(observed, ranks)
    told = [text for part in result.parts for text in (part.name, part.freed) if text]
    for text in (*told, *result.suggestions):
        assert "frees" not in translated(text, "zh")
        assert not re.search("[a-z]{3,} [a-z]{2,} [a-z]{2,}", translated(text, "zh")), text


def parts(observed):
    return {(part.kind, part.name): part.bytes for part in memory(observed).parts}


def test_a_blocks_modules_are_one_part():
    assert parts(STEP)["activations", "network.blocks.3"] == GIB


def test_a_loss_outside_of_modules_is_named_by_itself():
    observed = {**STEP, "activations": [{"module": OUTSIDE, "type": CROSS_ENTROPY, "bytes": GIB}]}
    assert parts(observed)["activations", CROSS_ENTROPY] == GIB


def test_what_no_tensor_accounts_for_is_workspaces_and_temporaries():
    assert parts(STEP)["other", "workspaces and temporaries"] == 3 * GIB


def test_ranks_of_one_machines_memory_are_not_advised_to_spread_it():
    kinds = {saving.kind for saving in savings({**STEP, "device": "cpu"})}
    assert "sharding" not in kinds and kinds
    assert "sharding" in {saving.kind for saving in savings({**STEP, "device": "cpu"}, 2)}


def saving(observed, kind, **situation):
    return next((one.bytes for one in savings(observed, **situation) if one.kind == kind), None)


@pytest.mark.parametrize(
    ("kind", "freed"),
    [
        ("checkpointing", 7 * GIB),  # but for 2 GiB of inputs, and a block that is computed again
        ("half the batch", 11 * GIB // 2),
        ("a smaller optimizer state", 2 * GIB),
        ("a fused head and loss", GIB),
        ("sharding", 3 * GIB),
    ],
)
def test_each_change_frees_what_arithmetic_says(kind, freed):
    assert saving(STEP, kind) == freed


def test_more_ranks_free_more_by_sharding():
    assert saving(STEP, "sharding", world_size=6) == 5 * GIB


def test_what_is_sharded_already_is_not_sharded_again():
    assert saving(STEP, "sharding", sharded=True) is None


def test_the_update_with_its_own_peak_bounds_what_checkpointing_frees():
    observed = dict(STEP, update_peak=16 * GIB)
    (sentence,) = (text for text in memory(observed).suggestions if "checkpointing" in text)
    assert saving(observed, "checkpointing") == 4 * GIB
    assert "frees 4.00 GiB: " in sentence
    assert sentence.endswith(" Then the optimizer's update is the peak.")


def test_sgd_with_one_moment_has_no_smaller_optimizer_state():
    assert saving(dict(STEP, optimizer=2 * GIB), "a smaller optimizer state") is None


def test_under_a_cuda_graph_the_pool_is_the_activations():
    graph = {"device": "cuda:0", "peak": 10, "parameters": 2, "graph_pools": 7, "saved_tensors": 0}
    kinds = [(part.kind, part.bytes) for part in memory(graph).parts]
    assert kinds == [("weights", 2), ("activations", 7), ("other", 1)]


@pytest.mark.parametrize(
    ("observed", "reason"),
    [
        (None, "The program did not look at its memory."),
        ({"error": "The memory of a step could not be looked at: no."}, "could not be looked at: no."),
        ({"peak": "much"}, "did not tell the peak"),
    ],
)
def test_without_an_observation_there_is_a_reason_and_no_memory(observed, reason):
    assert memory(observed) is None
    assert reason in refusal(observed)


@pytest.mark.parametrize(
    "broken", [{"activations": 3}, {"activations": [None]}, {"parameters": -5}, {"blocks": {}}]
)
def test_what_a_program_wrote_that_is_no_size_counts_for_nothing(broken):
    assert sum(part.bytes for part in memory({"peak": 100, **broken}).parts) == 100


def test_sizes_are_in_binary_units():
    assert [in_bytes(size) for size in (7, 1536, 3 * 2**20, 5 * GIB)] == [
        "7 bytes",
        "1.50 KiB",
        "3.00 MiB",
        "5.00 GiB",
    ]
