"""Errors that people make when they write a transformer again, each planted in the float64 network.

python tests/transformer_proofs/planted_in_transformers.py     prints the table of docs/conformance.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np

from trainmark.workloads.bert import shared as bert_model
from trainmark.workloads.common import layers64 as layer
from trainmark.workloads.common.layers64 import TapeValue
from trainmark.workloads.gpt2 import shared as gpt2_model
from trainmark.workloads.llama import shared as llama_model
from trainmark.workloads.transformers.conformance import networks, observe, reference
from trainmark.workloads.transformers.conformance.networks import Parts
from trainmark.workloads.transformers.conformance.reference import rank_deviations

Change = tuple[ModuleType, str, Any]
# The functions as they are; a planted one replaces the module's.
attention, part, rotary, cross_entropy = layer.attention, layer.part, layer.rotary, layer.cross_entropy
positions, averaged, loss_of_bert = networks.positions, reference.averaged, networks.bert_loss
sentence_loss, masked_loss, embedded = networks.sentence_loss, networks.masked_loss, networks.embedded
gather = layer.gather
direction, is_decayed, clipped = reference.direction, reference.is_decayed, reference.clipped


@dataclass(frozen=True)
class Planted:
    """Each module's attribute becomes another; `ranks` is how many it takes to show."""

    changes: tuple[Change, ...]
    ranks: int = 1
    optimizer: str = ""

    @contextmanager
    def planted(self) -> Iterator[None]:
        if not self.changes:
            yield
            return
        (module, name, wrong), *others = self.changes
        with patch.object(module, name, wrong), Planted(tuple(others)).planted():
            yield


def plant(module: ModuleType, name: str, wrong: Any, **options: Any) -> Planted:
    return Planted(((module, name, wrong),), **options)


# What the networks can have wrong.


def untied_head(net: Parts, x: TapeValue) -> TapeValue:
    """A head of its own with the embedding's values; its gradients go to itself."""
    return net(layer.linear, x, TapeValue(net.weights["token_embedding.weight"].array))


def gpt2_post_norm(net: Parts, name: str, x: TapeValue) -> TapeValue:
    allowed = networks.causal(x.array.shape[1])
    x = net.norm(f"{name}.norm1", net(layer.addition, x, net.qkv_attention(name, x, allowed)))
    return net.norm(f"{name}.norm2", net(layer.addition, x, net.mlp(name, x, layer.gelu_tanh)))


def bert_pre_norm(net: Parts, name: str, x: TapeValue, lengths: Any) -> TapeValue:
    allowed = networks.within(lengths, x.array.shape[1])
    x = net(layer.addition, x, net.qkv_attention(name, net.norm(f"{name}.norm1", x), allowed))
    return net(layer.addition, x, net.mlp(name, net.norm(f"{name}.norm2", x), layer.gelu_erf))


def unscaled_attention(query, key, value, *, allowed):
    scale = math.sqrt(query.shape[-1])
    y, backward = attention(query * scale, key, value, allowed=allowed)

    def scaled_backward(gradient):
        by_query, by_key, by_value = backward(gradient)
        return by_query * scale, by_key, by_value

    return y, scaled_backward


def tiled_attention(query, key, value, *, allowed):
    """Heads 0, 1, 2, 3 take key heads 0, 1, 0, 1 instead of 0, 0, 1, 1."""
    group = query.shape[1] // key.shape[1]
    order = np.arange(query.shape[1]).reshape(group, key.shape[1]).T.reshape(-1)
    y, backward = attention(query[:, order], key, value, allowed=allowed)
    inverse = np.argsort(order)

    def reordered_backward(gradient):
        by_query, by_key, by_value = backward(gradient[:, order])
        return by_query[:, inverse], by_key, by_value

    return y[:, inverse], reordered_backward


def interleaved_rotary(x, *, base):
    """Pair even with odd elements, as the paper and Meta's own code do with their own order of weights."""
    order = np.r_[0 : x.shape[-1] : 2, 1 : x.shape[-1] : 2]
    inverse = np.argsort(order)
    y, backward = rotary(x[..., order], base=base)
    return y[..., inverse], lambda gradient: (backward(gradient[..., order])[0][..., inverse],)


def reversed_rotary(x, *, base):
    y, backward = rotary(x[..., ::-1, :], base=base)
    return y[..., ::-1, :], lambda gradient: (backward(gradient[..., ::-1, :])[0][..., ::-1, :],)


def keys_not_rotated(x, *, base):
    few = x.shape[1] < 4  # heads: keys have fewer than queries
    return (x, lambda gradient: (gradient,)) if few else rotary(x, base=base)


def rms_norm_epsilon_outside(x, scale, *, epsilon):
    root = np.sqrt(np.square(x).mean(-1, keepdims=True))
    size, normal = root + epsilon, x / (root + epsilon)

    def backward(gradient):
        inner = gradient * scale
        across = inner - x / root * (inner * normal).mean(-1, keepdims=True)
        return across / size, (gradient * normal).reshape(-1, x.shape[-1]).sum(0)

    return normal * scale, backward


def centred_rms_norm(x, scale, *, epsilon):
    y, backward = layer.layer_norm(x, scale, np.zeros_like(scale), epsilon=epsilon)
    return y, lambda gradient: backward(gradient)[:2]


def sample_variance_norm(x, scale, bias, *, epsilon):
    """Divide by the deviation of a sample, n - 1, as torch.std does."""
    share = math.sqrt((x.shape[-1] - 1) / x.shape[-1])
    y, backward = ordinary_layer_norm(x, scale * share, bias, epsilon=epsilon)

    def rescaled_backward(gradient):
        by_x, by_scale, by_bias = backward(gradient)
        return by_x, by_scale * share, by_bias

    return y, rescaled_backward


ordinary_layer_norm = layer.layer_norm


def swapped_swiglu(net: Parts, name: str, x: TapeValue) -> TapeValue:
    gate = net(layer.silu, net.linear(f"{name}.up", x))
    return net.linear(f"{name}.down", net(layer.product, gate, net.linear(f"{name}.gate", x)))


def positions_of(shift: int) -> Callable[..., Any]:
    return lambda tokens: positions(tokens) + shift


def part_in_order(*order: int) -> Callable[..., Any]:
    return lambda x, index, parts: part(x, index=order[index], parts=parts)


def no_sentence_loss(net: Parts, x: TapeValue, next_sentence: Any) -> TapeValue:
    return net(layer.product, sentence_loss(net, x, next_sentence), TapeValue(np.zeros(())))


def loss_over_padding(logits, *, labels):
    """Count the labels that are none, as token 0."""
    return cross_entropy(logits, labels=np.maximum(labels, 0))


def loss_over_slots(logits, *, labels):
    """Divide by the places for labels, not by the labels."""
    share = float((labels >= 0).mean())
    loss, backward = cross_entropy(logits, labels=labels)
    return loss * share, lambda gradient: backward(gradient * share)


def mean_of_micro_batches(net, batch):
    """Take the mean over two micro-batches' own means."""
    halves = zip(*(np.split(array, 2) for array in batch), strict=True)
    one, other = (loss_of_bert(net, half) for half in halves)
    return net(layer.product, net(layer.addition, one, other), TapeValue(np.asarray(0.5)))


def weighted_loss(factor: float) -> Callable[..., Any]:
    def wrong(net: Parts, x: TapeValue, next_sentence: Any) -> TapeValue:
        return net(layer.product, sentence_loss(net, x, next_sentence), TapeValue(np.asarray(factor)))

    return wrong


def last_token_pooled(x, *, positions):
    first = positions.shape[1] == 1
    return gather(x, positions=positions + x.shape[1] - 1 if first else positions)


# What the optimizer and the ranks can have wrong.


def without_bias_correction(first, second, steps, constants):
    return first / (np.sqrt(second) + constants.epsilon)


def epsilon_under_root(first, second, steps, constants):
    mean, square = first / (1 - constants.beta1**steps), second / (1 - constants.beta2**steps)
    return mean / np.sqrt(square + constants.epsilon)


def epsilon_before_correction(first, second, steps, constants):
    """As Keras has it: the second moment's correction also scales epsilon."""
    factor = math.sqrt(1 - constants.beta2**steps) / (1 - constants.beta1**steps)
    return factor * first / (np.sqrt(second) + constants.epsilon)


class CoupledDecay(reference.Optimizer):
    """Adam with the decay in the gradient, instead of AdamW."""

    def update(self, weights, gradients, rate):
        decay = self.constants.weight_decay
        regular = {
            name: gradient + decay * weights[name] if weights[name].ndim >= 2 else gradient
            for name, gradient in gradients.items()
        }
        with patch.object(reference, "is_decayed", never_decayed):
            return super().update(weights, regular, rate)


def never_decayed(name, weight):
    return False


def always_decayed(name, weight):
    return True


def embeddings_not_decayed(name, weight):
    return is_decayed(name, weight) and "embedding" not in name


def clipped_by_rank(family: str) -> Callable[..., Any]:
    return lambda ranks: averaged([clipped(gradients, observe.CONSTANTS[family].clip) for gradients in ranks])


def clipped_by_tensor(gradients: Mapping[str, Any], limit: float) -> dict[str, Any]:
    return {name: clipped({name: gradient}, limit)[name] for name, gradient in gradients.items()}


def summed_over_ranks(ranks):
    return {name: gradient * len(ranks) for name, gradient in averaged(ranks).items()}


def summed_over_micro_batches(ranks):
    return {name: gradient * 2 for name, gradient in averaged(ranks).items()}


def of_all_families(family: str) -> dict[str, Planted]:
    return {
        "decay on norms and biases": plant(reference, "is_decayed", always_decayed),
        "no weight decay": plant(reference, "is_decayed", never_decayed, optimizer="adamw"),
        "no decay on embeddings": plant(reference, "is_decayed", embeddings_not_decayed),
        "bias correction forgotten": plant(reference, "direction", without_bias_correction),
        "optimizer's epsilon under the root": plant(reference, "direction", epsilon_under_root),
        "optimizer's epsilon before the bias correction": plant(
            reference, "direction", epsilon_before_correction
        ),
        "decay in the gradient (Adam with L2)": plant(
            reference, "Optimizer", CoupledDecay, optimizer="adamw"
        ),
        "no clipping": plant(reference, "clipped", lambda gradients, limit: dict(gradients)),
        "clipping by tensor": plant(reference, "clipped", clipped_by_tensor),
        "clipping by rank instead of globally": Planted(
            (
                (reference, "averaged", clipped_by_rank(family)),
                (reference, "clipped", lambda gradients, limit: dict(gradients)),
            ),
            ranks=2,
        ),
        "micro-batches' gradients summed": plant(reference, "averaged", summed_over_micro_batches),
        "gradients summed over the ranks": plant(reference, "averaged", summed_over_ranks, ranks=2),
        "gradients not exchanged": plant(reference, "averaged", lambda ranks: dict(ranks[0]), ranks=2),
        "attention not scaled": plant(layer, "attention", unscaled_attention),
    }


def causal_mask(shift: int) -> Callable[[int], Any]:
    return lambda tokens: np.tri(tokens, k=shift, dtype=bool)


PLANTED: dict[str, dict[str, Planted]] = {
    "gpt2": {
        "GELU by erf instead of tanh": plant(layer, "gelu_tanh", layer.gelu_erf),
        "untied head": plant(networks, "gpt2_head", untied_head),
        "mask lets a token see the next": plant(networks, "causal", causal_mask(1)),
        "no causal mask": plant(networks, "causal", causal_mask(observe.LENGTH)),
        "positions off by one": plant(networks, "positions", positions_of(1)),
        "key before query in qkv": plant(layer, "part", part_in_order(1, 0, 2)),
        "value before key in qkv": plant(layer, "part", part_in_order(0, 2, 1)),
        "post-norm instead of pre-norm": plant(networks, "gpt2_block", gpt2_post_norm),
        "norm's epsilon 1e-6 instead of 1e-5": plant(gpt2_model, "NORM_EPSILON", 1e-6),
        "norm by the sample's variance": plant(layer, "layer_norm", sample_variance_norm),
        **of_all_families("gpt2"),
    },
    "bert": {
        "GELU by tanh instead of erf": plant(layer, "gelu_erf", layer.gelu_tanh),
        "loss over missing labels": plant(layer, "cross_entropy", loss_over_padding),
        "loss divided by places for labels": plant(layer, "cross_entropy", loss_over_slots),
        "mean of micro-batches' means": plant(networks, "bert_loss", mean_of_micro_batches),
        "attention to padding": plant(networks, "within", lambda lengths, tokens: np.ones(tokens, bool)),
        "causal mask": plant(networks, "within", lambda lengths, tokens: networks.causal(tokens)),
        "next sentence's loss missing": plant(networks, "sentence_loss", no_sentence_loss),
        "next sentence's loss halved": plant(networks, "sentence_loss", weighted_loss(0.5)),
        "segments ignored": plant(
            networks, "embedded", lambda net, tokens, segments: embedded(net, tokens, 0 * segments)
        ),
        "positions off by one": plant(networks, "positions", positions_of(1)),
        "last token pooled instead of first": plant(layer, "gather", last_token_pooled),
        "pre-norm instead of post-norm": plant(networks, "bert_block", bert_pre_norm),
        "norm's epsilon 1e-5 instead of 1e-12": plant(bert_model, "NORM_EPSILON", 1e-5),
        "key before query in qkv": plant(layer, "part", part_in_order(1, 0, 2)),
        "LAMB's trust ratio forgotten": plant(reference, "trust", lambda weight, step: 1.0),
        "LAMB's trust ratio of the gradient's step without decay": plant(
            reference,
            "trust",
            lambda weight, step: np.linalg.norm(weight)
            / np.linalg.norm(step - observe.CONSTANTS["bert"].weight_decay * weight),
        ),
        **of_all_families("bert"),
    },
    "llama": {
        "rotary pairs of even and odd elements": plant(layer, "rotary", interleaved_rotary),
        "rotary turned backward": plant(layer, "rotary", reversed_rotary),
        "keys not rotated": plant(layer, "rotary", keys_not_rotated),
        "rotary base of 10,000": plant(llama_model, "ROTARY_BASE", 10000.0),
        "key and value heads tiled": plant(layer, "attention", tiled_attention),
        "RMSNorm's epsilon outside the root": plant(layer, "rms_norm", rms_norm_epsilon_outside),
        "RMSNorm's epsilon 1e-6 instead of 1e-5": plant(llama_model, "NORM_EPSILON", 1e-6),
        "RMSNorm with the mean taken out": plant(layer, "rms_norm", centred_rms_norm),
        "gate and up swapped in SwiGLU": plant(networks, "swiglu", swapped_swiglu),
        "GELU in place of SiLU": plant(layer, "silu", layer.gelu_tanh),
        "mask lets a token see the next": plant(networks, "causal", causal_mask(1)),
        **of_all_families("llama"),
    },
}  # fmt: skip


def observed(family: str, error: Planted) -> tuple[str, list[dict[str, Any]]]:
    """Return the optimizer of the training with this error, and what its ranks show."""
    with error.planted():
        net = reference.network(family)
        optimizer = error.optimizer or net.optimizers[0]
        return optimizer, reference.observe(net, optimizer, error.ranks)


def margin(family: str, error: Planted) -> tuple[float, str]:
    """Return the largest error as a multiple of what is allowed, and the figure that has it."""
    optimizer, shown = observed(family, error)
    expected = reference.expected(family, optimizer, error.ranks)
    figures = [
        figure
        for seen, right in zip(shown, expected, strict=True)
        for figure in rank_deviations(family, seen, right)
    ]
    worst = max(figures, key=lambda figure: figure.share)
    return worst.share, worst.what


def main() -> None:
    for family, errors in PLANTED.items():
        print(f"| planted in {family} | ranks | error ÷ allowed | most in |\n|---|---|---|---|")
        for name, error in errors.items():
            share, what = margin(family, error)
            print(f"| {name} | {error.ranks} | {share:,.0f} | {what} |")
        print()


if __name__ == "__main__":
    main()
