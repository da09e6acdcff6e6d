"""A transformer trained the way most PyTorch programs do it, to be measured beside ours.

Float32 weights under bfloat16 autocast, `torch.compile` over model and loss, `torch.optim.AdamW(fused=True)`,
`clip_grad_norm_`, `cross_entropy`: python -m benchmarks.stock_transformers gpt2 --batch 64 --compile
The modules are those of our own programs, so that only the training around them differs.
"""

from __future__ import annotations

import argparse
import functools
import importlib

import torch
from torch import nn
from torch.nn import functional

from trainmark import probe
from trainmark.workloads.transformers.training import bert_batches, decoder_batches


class Decoder(nn.Module):
    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        logits = functional.linear(self.network(tokens), self.network.head_weight)
        return functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten().long())


class Pretraining(nn.Module):
    """BERT with its MLM head over all positions, and next-sentence prediction."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, tokens, segments, lengths, labels, next_sentence):  # type: ignore[no-untyped-def]
        hidden, sentence = self.network(tokens, segments, lengths)
        logits = functional.linear(hidden, self.network.head_weight, self.network.head.bias).float()
        loss = functional.cross_entropy(logits.flatten(0, 1), labels.flatten().long(), ignore_index=-1)
        return loss + functional.cross_entropy(sentence.float(), next_sentence.long())


def batch_of(family: str, opt: argparse.Namespace) -> tuple[torch.Tensor, ...]:
    if family != "bert":
        return tuple(map(torch.from_numpy, decoder_batches(opt, 1)[0]))
    from trainmark.workloads.bert.pytorch import labels_of_all

    parts = tuple(map(torch.from_numpy, bert_batches(opt, 1)[0]))
    tokens, segments, lengths, positions, labels, next_sentence = parts
    return tokens, segments, lengths, labels_of_all(tokens, positions, labels), next_sentence


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("family", choices=["gpt2", "bert", "llama"])
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--steps", type=int, default=40)
    asked, rest = parser.parse_known_args()
    package = f"trainmark.workloads.{asked.family}"
    spec = importlib.import_module(f"{package}.shared").SPEC
    opt = spec.parse([*rest, "--device", "cuda", "--precision", "bf16"], "stock")
    networks = importlib.import_module(f"{package}.pytorch")
    network = {"gpt2": "GPT2", "bert": "Bert", "llama": "Llama"}[asked.family]
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = (Pretraining if asked.family == "bert" else Decoder)(getattr(networks, network)(opt))
        model.network.initialize()
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, weight_decay=0.1, fused=True)
    run = torch.compile(model) if asked.compile else model
    batch = tuple(part.cuda() for part in batch_of(asked.family, opt))
    event = functools.partial(torch.cuda.Event, enable_timing=True)
    record = probe.start(
        unit=spec.unit,
        clock=probe.EventClock(event),
        framework="pytorch",
        framework_version=torch.__version__,
    )
    for _ in range(asked.steps):
        with torch.autocast("cuda", torch.bfloat16):
            loss = run(*batch)
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        record.step(opt.step_samples, memory=torch.cuda.max_memory_allocated())
    record.end()


if __name__ == "__main__":
    main()
