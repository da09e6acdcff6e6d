"""What held the memory of a step on a GPU, against the allocator's own count."""

from __future__ import annotations

import gc

import pytest

from trainmark.explain import memory as explained
from trainmark.inside.profiler import pytorch_memory

torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install 'trainmark[pytorch]'")

from torch import nn  # noqa: E402 - only where torch is
from torch.utils.checkpoint import checkpoint  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA device here")

WIDTH = 256


class Network(nn.Module):
    def __init__(self, checkpointed):
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
            for _ in range(8)
        )
        self.checkpointed = checkpointed

    def forward(self, x):
        for block in self.blocks:
            x = x + (checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x))
        return x


class Training:
    def __init__(self, batch=8192, checkpointed=False):
        self.network = Network(checkpointed).cuda()
        self.optimizer = torch.optim.AdamW(self.network.parameters(), fused=True, capturable=True)
        self.batch = torch.randn(batch, WIDTH, device="cuda")
        for _ in range(2):
            self.step()

    def step(self):
        self.optimizer.zero_grad()
        self.network(self.batch).square().mean().backward()
        self.optimizer.step()

    def observe(self, run=None):
        return pytorch_memory.measure(run or self.step, [self.optimizer])


def observe(**arguments):
    gc.collect()  # an optimizer refers to itself: what an earlier one held would count
    torch.cuda.empty_cache()
    return Training(**arguments).observe()


def test_the_peak_is_the_allocators():
    training = Training()
    torch.cuda.reset_peak_memory_stats()
    training.step()
    allocated = torch.cuda.max_memory_allocated()
    assert training.observe()["peak"] == allocated


def test_known_tensors_hold_most_of_the_peak_and_no_more_than_it():
    parts = explained.memory(observe()).parts
    whole = sum(part.bytes for part in parts if part.kind != "fragmentation")
    other = sum(part.bytes for part in parts if part.kind == "other")
    assert 0 <= other < 0.2 * whole


def test_the_peak_falls_by_what_checkpointing_was_said_to_free():
    without, with_it = observe(), observe(checkpointed=True)
    (predicted,) = (one.bytes for one in explained.savings(without) if one.kind == "checkpointing")
    assert without["peak"] - with_it["peak"] == pytest.approx(predicted, rel=0.1)


def test_the_peak_falls_by_what_half_the_batch_was_said_to_free():
    whole, half = observe(), observe(batch=4096)
    (predicted,) = (one.bytes for one in explained.savings(whole) if one.kind == "half the batch")
    assert whole["peak"] - half["peak"] == pytest.approx(predicted, rel=0.15)


def test_a_replayed_graph_has_its_activations_in_its_pool():
    training = Training()
    eager = training.observe()
    graph = torch.cuda.CUDAGraph()
    training.optimizer.zero_grad()
    with torch.cuda.graph(graph):
        training.step()
    observed = training.observe(graph.replay)
    assert observed["saved_tensors"] == 0
    assert observed["graph_pools"] > 0.8 * explained.activations(eager)
    assert sum(part.bytes for part in explained.memory(observed).parts) >= observed["peak"]
