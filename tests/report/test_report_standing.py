"""A result of a report stands among published rows in its own unit."""

from sample_documents import result

from trainmark.logs.ledger import load_for
from trainmark.measure.key import Key
from trainmark.store.report import standing_of

GPT2 = Key(
    workload="gpt2",
    framework="pytorch",
    axes=(("size", "124m"), ("length", 1024)),
    precision="bf16",
    batch_per_device=64,
    devices_per_node=8,
    device="NVIDIA H100 80GB HBM3",
)


def test_tokens_are_compared_with_tokens_and_sequences_with_nothing_here():
    entries = load_for([GPT2])
    placed = standing_of(result(GPT2, 4_000_000, unit="tokens"), entries)
    assert (placed.best.source, placed.best.row.unit) == ("modded-nanogpt", "tokens/s")
    assert standing_of(result(GPT2, 4_000, unit="sequences"), entries) is None
