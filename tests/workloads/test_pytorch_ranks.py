from __future__ import annotations

import itertools
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from pytorch_workload import CPU, HANG_SECONDS, PROGRAM, TINY, asked, environment, steps_in, torch, workload
from two_rank_program import RATE, STEPS

import small_resnet
from trainmark.events.stream import read
from trainmark.measure.trace import trace_of
from trainmark.measure.trial import WindowRules, measure_trial
from trainmark.workloads.resnet50.shared import recipe

PROGRAM_FILE = Path(__file__).with_name("two_rank_program.py")
SLOW_PROGRAM = Path(__file__).with_name("slow_rank_program.py")


def on_two_ranks(command: list[str], **variables: str) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, **variables}
    ranks = [
        subprocess.Popen(
            [sys.executable, *command],
            env=environment(RANK=rank, LOCAL_RANK=rank, **shared),
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in "01"
    ]
    try:
        for rank in ranks:
            _, errors = rank.communicate(timeout=HANG_SECONDS)
            assert rank.returncode == 0, errors
    finally:
        for rank in ranks:
            rank.kill()


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    on_two_ranks([str(PROGRAM_FILE), str(folder)])
    return [torch.load(folder / f"rank{rank}.pt") for rank in range(2)]


@dataclass(frozen=True)
class Alone:
    """What one process makes of both ranks' batches: `statistics` are those of each batch for itself."""

    start: dict[str, torch.Tensor]
    weights: dict[str, torch.Tensor]
    statistics: list[dict[str, torch.Tensor]]


@pytest.fixture(scope="module")
def alone(two_ranks):
    """The mean of both gradients, while batch norm sees and remembers one batch at a time."""
    opt = asked("--batch", "4")
    model = workload.build_model(opt, CPU)
    start = copied(model.named_parameters())
    statistics = [copied(model.named_buffers()) for _ in two_ranks]
    criterion = torch.nn.CrossEntropyLoss(label_smoothing=recipe.STANDARD.label_smoothing)
    step = workload.Step(opt, model, CPU)
    step.rate.fill_(RATE)
    for _ in range(STEPS):
        step.optimizer.zero_grad()
        for rank, checkpoint in enumerate(two_ranks):
            model.load_state_dict(statistics[rank], strict=False)
            images, labels = checkpoint["batch"]
            (criterion(model(images), labels) / 2).backward()
            statistics[rank] = copied(model.named_buffers())
        step.optimizer.step()
    return Alone(start, copied(model.named_parameters()), statistics)


def copied(named):
    return {name: tensor.detach().clone() for name, tensor in named}


def test_no_thread_of_the_group_is_left_to_meet_the_end_of_the_interpreter(two_ranks):
    assert [[name for name in rank["threads"] if "gloo" in name] for rank in two_ranks] == [[], []]


def test_both_ranks_hold_the_same_weights_after_training(two_ranks, alone):
    first, second = (checkpoint["state"] for checkpoint in two_ranks)
    assert all(torch.equal(first[name], second[name]) for name in alone.weights)


def test_two_ranks_train_as_one_process_with_the_mean_of_both_gradients(two_ranks, alone):
    for name, weights in alone.weights.items():
        moved, moved_alone = two_ranks[0]["state"][name] - alone.start[name], weights - alone.start[name]
        torch.testing.assert_close(moved, moved_alone, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("rank", [0, 1])
def test_each_rank_keeps_the_batch_norm_statistics_of_its_own_images(rank, two_ranks, alone):
    for name, statistic in alone.statistics[rank].items():
        torch.testing.assert_close(two_ranks[rank]["state"][name], statistic, rtol=1e-3, atol=1e-5)


def traced(folder, steps, *arguments, **variables):
    on_two_ranks([*arguments, *TINY, "--steps", str(steps)], TRAINMARK_EVENTS=str(folder), **variables)
    return [list(read(folder / f"rank{rank}.jsonl")) for rank in range(2)]


@pytest.fixture(scope="module")
def ranks_events(tmp_path_factory):
    return traced(tmp_path_factory.mktemp("ranks_events"), 4, "-m", PROGRAM)


def test_two_ranks_tell_their_computing_from_their_waiting(ranks_events):
    steps = [step for events in ranks_events for step in steps_in(events)]
    assert all(step.compute > 0 and step.communication > 0 for step in steps)


def test_what_a_rank_tells_of_a_step_fits_into_it(ranks_events):
    for events in ranks_events:
        steps = steps_in(events)
        for before, step in itertools.pairwise(steps):
            assert step.compute + step.communication + step.data_wait <= step.mono - before.mono


def test_rank_0_tells_its_gradient_buckets_in_the_order_in_which_they_are_ready(ranks_events):
    facts = ranks_events[0][-1].facts
    ready = [bucket["ready_seconds"] for bucket in facts["gradient_buckets"]]
    assert sum(bucket["bytes"] for bucket in facts["gradient_buckets"]) == 4 * recipe.PARAMETERS
    assert len(ready) > 2
    assert ready == sorted(ready)
    assert ready[-1] == pytest.approx(facts["backward_seconds"])
    assert "gradient_buckets" not in ranks_events[1][-1].facts


def test_a_rank_that_holds_the_other_back_is_named(tmp_path):
    code = small_resnet.copy_code(small_resnet.THREE_BLOCKS, tmp_path / "code")
    slow = {"SLOW_RANK": "1", "SLOW_SECONDS": "0.3", "PYTHONPATH": str(code)}
    ranks = traced(tmp_path, 14, str(SLOW_PROGRAM), **slow)
    trace = trace_of(event for events in ranks for event in events)
    (straggler,) = measure_trial(trace, WindowRules(warmup_steps=3)).stragglers
    assert straggler.rank == 1
    assert 0 < straggler.cost < 1


def test_two_ranks_report_their_own_batch_and_the_rate_of_both(ranks_events):
    for rank, events in enumerate(ranks_events):
        assert events[0].world_size == 2
        assert [(step.rank, step.samples) for step in steps_in(events)] == [(rank, 2)] * 4
        rates = [recipe.STANDARD.learning_rate(step, 4) for step in range(4)]
        assert [step.lr for step in steps_in(events)] == rates
