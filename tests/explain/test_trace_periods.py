"""Steps of a trace without annotations, by the kernels that repeat."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest
from builders_trace import call, kernel, operator, write_trace
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmark.explain import chrome_trace, step_ends
from trainmark.explain.profile import Collector, DeviceKind, DeviceSpans
from trainmark.explain.step_ends import steps_by_repetition

TIME, GAP = 9_000, 1_000
FUSED_ADAM = ["multi_tensor_apply_kernel<FusedAdamMathFunctor>"]
LOOP_SGD = ["mul_", "add_"] * 20  # elementwise kernels, whose names tell nothing


def block(prefix: str, kernels: int = 20) -> list[str]:
    """A few of the names occur several times in a block, and forward and backward share some."""
    return [f"{prefix}{number}" if number % 3 else f"gemm{number % 4}" for number in range(kernels)]


def micro_batch(blocks: int = 12) -> list[str]:
    forward = ["embedding", *block("forward") * blocks, "layer_norm", "gemm0", "softmax", "nll"]
    return [*forward, "nll_backward", *block("backward", 35) * blocks, "embedding_backward"]


def transformer(blocks: int = 12, optimizer: list[str] = FUSED_ADAM, micro_batches: int = 1) -> list[str]:
    return micro_batch(blocks) * micro_batches + optimizer


def device_spans(
    names: list[str],
    streams: list[int] | None = None,
    pauses: dict[int, int] | None = None,
    times: dict[str, int] | None = None,
) -> DeviceSpans:
    """Kernels one after the other; `pauses` are before some, by place, `times` those of some, by name."""
    collector, at = Collector(), 0
    for place, name in enumerate(names):
        at += (pauses or {}).get(place, 0)
        time = (times or {}).get(name, TIME)
        collector.device(name, at, at + time, streams[place] if streams else 7)
        at += time + GAP
    return collector.device_spans()


def kernels_of(spans: DeviceSpans, steps) -> list[list[str]]:
    """Return the names of the kernels that ended in each step; kernels do not overlap."""
    names = [spans.names[name] for name in spans.name.tolist()]
    edges = np.searchsorted(spans.end, [steps[0].start, *(step.end for step in steps)], side="right")
    return [names[first:last] for first, last in pairwise(edges.tolist())]


def lengths(repetition) -> list[int]:
    return [round((step.end - step.start) / (TIME + GAP)) for step in repetition.steps]


@pytest.mark.parametrize("optimizer", [FUSED_ADAM, LOOP_SGD])
@pytest.mark.parametrize("blocks", [1, 12, 96])
def test_a_step_of_many_equal_blocks_is_not_cut_at_a_block(blocks, optimizer):
    step = transformer(blocks, optimizer)
    found = steps_by_repetition(device_spans(step * 5))
    assert found.kernels == len(step)
    assert lengths(found) == [len(step)] * 4


@pytest.mark.parametrize(
    ("optimizer", "micro_batches"), [(FUSED_ADAM, 2), (FUSED_ADAM, 4), (FUSED_ADAM, 64), (LOOP_SGD, 4)]
)
def test_micro_batches_belong_to_the_optimizer_step_that_ends_them(optimizer, micro_batches):
    step = transformer(4, optimizer, micro_batches)
    for cut in (0, len(step) // micro_batches - 20, len(step) // 2 + 20):
        assert steps_by_repetition(device_spans((step * 5)[cut:])).kernels == len(step)


def test_an_optimizer_of_few_but_long_kernels_ends_the_micro_batches():
    step = transformer(12, ["update", "update"], 4)
    spans = device_spans(step * 4, times={"update": 100 * TIME})
    assert steps_by_repetition(spans).kernels == len(step)


def test_micro_batches_are_no_steps_where_too_few_optimizer_steps_are_recorded():
    assert steps_by_repetition(device_spans(transformer(4, LOOP_SGD, 4) * 2)) is None


def test_micro_batches_are_no_steps_where_most_of_those_recorded_end_with_the_optimizer():
    step, half = transformer(4, FUSED_ADAM, 2), len(micro_batch(4))
    assert steps_by_repetition(device_spans((step * 5)[half : -half - 1])).kernels == len(step)


@pytest.mark.parametrize("step", [["gemm"], ["gemm", "relu"], ["a", "a", "b"]])
def test_a_step_may_be_a_few_kernels(step):
    found = steps_by_repetition(device_spans(step * 30))
    assert found.kernels == len(step)
    assert len(found.steps) == 29


def test_steps_begin_at_ends_of_kernels_and_have_no_gap_between_them():
    spans = device_spans(transformer() * 6)
    steps = steps_by_repetition(spans).steps
    assert {step.end for step in steps} | {steps[0].start} <= set(spans.end.tolist())
    assert [step.start for step in steps[1:]] == [step.end for step in steps[:-1]]
    assert [step.number for step in steps] == list(range(5))


@pytest.mark.parametrize(("begin", "end"), [(0, 0), (1, 0), (650, 0), (0, 1), (100, 500), (400, 600)])
def test_a_step_ends_after_the_optimizer_wherever_the_record_begins_and_ends(begin, end):
    step = transformer(optimizer=["unscale", *FUSED_ADAM, "amp_update_scale_cuda_kernel"])
    names = step * 7
    pauses = {place: 50_000 for place, name in enumerate(names) if name == "amp_update_scale_cuda_kernel"}
    spans = device_spans(names[begin : len(names) - end], pauses={at - begin: pauses[at] for at in pauses})
    for kernels in kernels_of(spans, steps_by_repetition(spans).steps):
        assert kernels == step


def test_without_a_known_optimizer_a_step_ends_before_its_longest_idle_gap():
    step = transformer(optimizer=["add_"] * 3)
    backward = step.index("nll_backward")
    pauses = dict.fromkeys(range(backward, 6 * len(step), len(step)), 50_000)
    pauses[20] = 900_000  # not in every step
    spans = device_spans(step * 6, pauses=pauses)
    for names in kernels_of(spans, steps_by_repetition(spans).steps):
        assert names == step[backward:] + step[:backward]


def test_three_whole_steps_are_needed():
    step = transformer()
    assert len(steps_by_repetition(device_spans(step * 3)).steps) == 2
    assert steps_by_repetition(device_spans((step * 3)[len(step) // 2 :])) is None
    assert steps_by_repetition(device_spans(step * 2)) is None


@pytest.mark.parametrize("optimizer", [FUSED_ADAM, LOOP_SGD])
def test_one_step_is_not_taken_apart_into_its_blocks(optimizer):
    assert steps_by_repetition(device_spans(transformer(48, optimizer))) is None


@pytest.mark.parametrize("blocks", [12, 96])
def test_one_forward_pass_is_not_taken_apart_into_its_blocks(blocks):
    names = ["embedding", *block("forward") * blocks, "layer_norm", "gemm0", "softmax"]
    assert steps_by_repetition(device_spans(names)) is None


def test_blocks_of_one_backward_pass_are_not_steps_where_something_else_repeats():
    head = ["norm", "gemm", "softmax", "nll", "argmax", "equal", "sum"]
    evaluation = ["embedding", *block("evaluation") * 30, *head]
    found = steps_by_repetition(device_spans([*block("backward", 35) * 60, "norm", *evaluation * 5]))
    assert found.kernels == len(evaluation)


def test_what_repeats_among_much_else_of_the_same_kernels_is_no_step():
    chance = random.Random(6)
    others = [chance.choice("abcde") for _ in range(400)]
    assert steps_by_repetition(device_spans(others + ["a", "b", "c", "d", "e"] * 100)) is None


def test_what_repeats_in_a_small_part_of_the_time_is_no_step():
    spans = device_spans(["tuning"] * 3 + transformer(2) * 5, times={"tuning": 1_000 * TIME})
    assert steps_by_repetition(spans) is None


def test_the_many_kernels_of_one_optimizer_step_are_not_steps():
    optimizer = ["multi_tensor_apply_kernel<A>", "multi_tensor_apply_kernel<B>"] * 500
    assert steps_by_repetition(device_spans(transformer(2, optimizer))) is None


def test_kernels_in_no_order_have_no_steps():
    chance = random.Random(1)
    assert steps_by_repetition(device_spans([f"k{chance.randrange(9)}" for _ in range(5_000)])) is None
    assert steps_by_repetition(device_spans([f"k{place}" for place in range(100)])) is None
    assert steps_by_repetition(device_spans([])) is None


@pytest.mark.parametrize("blocks", [4, 24])
@pytest.mark.parametrize("optimizer", [FUSED_ADAM, LOOP_SGD * 20])
def test_autotuning_before_and_evaluation_after_are_left_out(blocks, optimizer):
    chance = random.Random(2)
    step = transformer(blocks, optimizer)
    tuning = [f"candidate{chance.randrange(50)}" for _ in range(len(step))]
    evaluation = ["embedding", *block("forward") * blocks, "softmax", "argmax"] * 5
    spans = device_spans(tuning + step * 8 + evaluation)
    found = steps_by_repetition(spans)
    assert found.kernels == len(step)
    assert len(found.steps) in (7, 8)
    assert all(sorted(names) == sorted(step) for names in kernels_of(spans, found.steps))


@pytest.mark.parametrize("optimizer", [FUSED_ADAM, LOOP_SGD])
def test_a_reduction_for_the_log_in_every_tenth_step_does_not_make_ten_steps_one(optimizer):
    step = transformer(12, optimizer)
    names = [name for number in range(45) for name in step + ["reduce_for_log"] * (number % 10 == 9)]
    found = steps_by_repetition(device_spans(names))
    assert found.kernels == len(step)
    assert len(found.steps) == 44


def test_a_gradient_scaler_may_skip_the_update_of_a_step_now_and_then():
    step = transformer(12)
    names = [name for number in range(40) for name in (micro_batch() if number % 10 == 4 else step)]
    found = steps_by_repetition(device_spans(names))
    assert found is not None
    assert found.kernels in (len(step), len(step) - 1)


def test_where_the_optimizer_is_known_whatever_else_is_rare_makes_no_longer_steps():
    step = transformer(2)
    names = [name for number in range(45) for name in step + ["reduce_for_log"] * 12 * (number % 10 == 9)]
    assert steps_by_repetition(device_spans(names)).kernels == len(step)


@pytest.mark.parametrize("optimizer", [FUSED_ADAM, LOOP_SGD])
def test_some_steps_may_have_other_algorithms_for_some_kernels(optimizer):
    chance = random.Random(3)
    names = []
    for _ in range(20):
        step = transformer(12, optimizer)
        for place in chance.sample(range(len(step) - len(optimizer)), 5):
            step[place] = chance.choice(["another_algorithm", "yet_another"])
        names += step
    found = steps_by_repetition(device_spans(names))
    assert lengths(found) == [len(step)] * 19


def test_steps_that_have_many_kernels_of_their_own_are_not_taken():
    chance = random.Random(8)
    step = transformer(12, LOOP_SGD)
    names = step * 20
    for place in chance.sample(range(len(names)), len(names) // 20):
        names[place] = f"another{chance.randrange(50)}"
    assert steps_by_repetition(device_spans(names)) is None


def test_kernels_that_change_places_do_not_matter():
    chance = random.Random(4)
    names = []
    for _ in range(20):
        step = transformer()
        for _ in range(10):
            place = chance.randrange(20, len(step) - 20)
            step[place], step[place + 1] = step[place + 1], step[place]
        names += step
    assert lengths(steps_by_repetition(device_spans(names))) == [len(transformer())] * 19


def test_another_stream_may_run_its_kernels_at_any_time():
    chance = random.Random(5)
    names, streams = [], []
    for _ in range(8):
        step = [(name, 7) for name in transformer()]
        for _ in range(30):
            step.insert(chance.randrange(len(step) - 1), (chance.choice(["all_reduce", "copy"]), 20))
        names += [name for name, _ in step]
        streams += [stream for _, stream in step]
    found = steps_by_repetition(device_spans(names, streams))
    assert found.kernels == len(transformer()) + 30
    assert len(found.steps) == 7


def test_kernels_may_be_on_another_stream_in_every_step():
    chance = random.Random(7)
    step = transformer(2)
    spans = device_spans(step * 8, [chance.choice((7, 8)) for _ in step * 8])
    assert lengths(steps_by_repetition(spans)) == [len(step)] * 7


def test_copies_between_the_kernels_are_not_counted():
    collector = Collector()
    for number in range(100):
        at = 100 * number
        collector.device(f"k{number % 5}", at, at + 50)
        if number % 7 == 0:
            collector.device("Memcpy HtoD", at + 60, at + 70, kind=DeviceKind.COPY, size=8)
    found = steps_by_repetition(collector.device_spans())
    assert found.kernels == 5
    assert {step.end - step.start for step in found.steps} == {500}


@pytest.mark.parametrize("replayed", [1, 2])
def test_no_step_ends_within_the_replay_of_a_graph(replayed):
    collector, step = Collector(), transformer(2)
    for place, name in enumerate(step * 12):
        launch = place // (replayed * len(step))
        collector.device(name, 10 * place, 10 * place + 9, launch=launch, in_graph=True)
    found = steps_by_repetition(collector.device_spans())
    if replayed == 1:
        assert [step.end for step in found.steps] == [10 * len(step) * n - 1 for n in range(2, 13)]
    else:
        assert found is None or found.kernels == 2 * len(step)


@pytest.mark.parametrize("optimizer", [FUSED_ADAM, LOOP_SGD])
def test_an_expected_length_chooses_among_the_lengths_that_repeat(optimizer):
    step = transformer(12, optimizer, 4)
    spans = device_spans(step * 6)
    seconds = len(step) * (TIME + GAP) / 1e9
    assert steps_by_repetition(spans, 1.1 * seconds).kernels == len(step)
    assert steps_by_repetition(spans, 0.27 * seconds).kernels == pytest.approx(len(step) / 4, rel=0.05)
    assert steps_by_repetition(spans, 0.05 * seconds).kernels == len(step)
    assert steps_by_repetition(spans, 50 * seconds).kernels == len(step)


def test_several_steps_may_be_what_is_expected():
    step = transformer()
    spans = device_spans(step * 6)
    found = steps_by_repetition(spans, 2.05 * len(step) * (TIME + GAP) / 1e9)
    assert lengths(found) == [2 * len(step)] * 2
    assert found.steps[-1].end == spans.end[-1]


def test_of_a_very_long_trace_the_last_kernels_are_taken(monkeypatch):
    monkeypatch.setattr(step_ends, "MOST_KERNELS", 5_000)
    step = transformer(2)
    spans = device_spans(step * 100)
    found = steps_by_repetition(spans)
    assert len(found.steps) == 5_000 // len(step)
    assert found.steps[-1].end == spans.end[-1]


def least_period(step: list[str]) -> int:
    return next(
        lag
        for lag in range(1, len(step) + 1)
        if len(step) % lag == 0 and step[:lag] * (len(step) // lag) == step
    )


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=14), st.integers(4, 12), st.data())
def test_whatever_repeats_exactly_is_cut_into_parts_of_the_same_kernels(step, repeats, data):
    period = least_period(step)
    begin = data.draw(st.integers(0, period - 1))
    end = data.draw(st.integers(0, period - 1))
    names = (step * (repeats * period * 10 // len(step)))[begin:]
    names = names[: len(names) - end]
    spans = device_spans(names)
    found = steps_by_repetition(spans)
    assert len({tuple(sorted(kernels)) for kernels in kernels_of(spans, found.steps)}) == 1
    assert period % found.kernels == 0
    assert len(found.steps) >= len(names) // found.kernels - 2


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(3, 8), st.integers(0, 60), st.integers(0, 60))
def test_steps_are_found_between_whatever_comes_before_and_after(chance, repeats, before, after):
    names = [f"k{chance.randrange(30)}" for _ in range(chance.randrange(30, 120))] * chance.randrange(1, 6)
    step = [*names, *(f"k{chance.randrange(30)}" for _ in range(20)), *FUSED_ADAM]
    noise = [f"n{chance.randrange(9)}" for _ in range(before + after)]
    spans = device_spans(noise[:before] + step * repeats + noise[before:])
    steps = steps_by_repetition(spans).steps
    assert kernels_of(spans, steps) == [step] * (repeats - 1)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=8), st.integers(1, 20), st.randoms(use_true_random=False)
)
def test_steps_of_any_kernels_are_without_gaps_and_at_ends_of_kernels(names, repeats, chance):
    collector = Collector()
    for place, name in enumerate(names * repeats):
        collector.device(f"k{name}", 10 * place, 10 * place + chance.randrange(30), chance.choice((0, 0, 1)))
    spans = collector.device_spans()
    found = steps_by_repetition(spans)
    if found is not None:
        assert len(found.steps) >= 2
        assert all(step.start <= step.end for step in found.steps)
        assert all(np.isin([step.start, step.end], spans.end).all() for step in found.steps)
        assert all(first.end == second.start for first, second in pairwise(found.steps))


def trace_events(step: list[str], repeats: int) -> list[dict]:
    events = [operator("aten::mm", 0, 50)]
    for place, name in enumerate(step * repeats):
        events += [call(10 * place, place + 1), kernel(name, 10 * place + 5, 9, correlation=place + 1)]
    return events


def test_a_trace_without_annotations_is_read_with_its_steps(tmp_path):
    step = transformer(2)
    profile = chrome_trace.read(write_trace(tmp_path / "t.json", trace_events(step, 5)))
    assert [s.end - s.start for s in profile.steps] == [10_000 * len(step)] * 4
    assert profile.facts["notes"] == (
        f"No step annotations: 4 steps were made out by the kernels that repeat ({len(step)} a step).",
    )


def test_a_trace_in_which_nothing_repeats_is_one_step(tmp_path):
    profile = chrome_trace.read(write_trace(tmp_path / "t.json", trace_events(transformer(2), 1)))
    assert len(profile.steps) == 1
    assert profile.facts["notes"] == ("No step annotations: everything recorded is taken as one step.",)


def test_operators_of_a_cpu_that_repeat_are_one_step(tmp_path):
    events = [operator(f"aten::op{place % 5}", 10 * place, 9) for place in range(100)]
    profile = chrome_trace.read(write_trace(tmp_path / "t.json", events))
    assert len(profile.steps) == 1
