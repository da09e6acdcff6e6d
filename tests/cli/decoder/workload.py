"""A family that counts tokens: sequences in a batch, lengths to fit, and the FLOP of other codes."""

from itertools import starmap

from trainmark.workloads.declaration import Axis, Layer, Workload
from trainmark.workloads.gpt2.shared import SIZES, shapes
from trainmark.workloads.transformers import flops

SHAPE = SIZES["mini"]
TENSORS = shapes(SHAPE)

WORKLOAD = Workload(
    name="decoder",
    title="a decoder that only sleeps",
    unit="tokens",
    batch_unit="sequences",
    axes=(
        Axis("length", 64, "sequence length", slug="t{}", fit_step=64),
        Axis("accumulate", 1, "micro-batches", slug="a{}", label="accumulate {}", quiet=True),
        Axis("recompute", "none", "recomputed", slug="recompute-{}", choices=flops.RECOMPUTE),
    ),
    samples_per_item=lambda axes: axes["length"] * axes["accumulate"],
    flops=lambda axes: flops.sample_flops(SHAPE, axes["length"]),
    hardware_flops=lambda axes: flops.hardware_flops(SHAPE, axes["length"], axes["recompute"]),
    conventions=lambda axes: flops.conventions(SHAPE, axes["length"], TENSORS),
    layers=lambda axes: list(starmap(Layer, flops.layers(SHAPE, axes["length"], TENSORS))),
)
