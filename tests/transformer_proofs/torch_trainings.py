"""The three transformers and their optimizers in PyTorch's own words, with the verbs of a training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from trainmark.workloads.bert import shared as bert_model
from trainmark.workloads.gpt2 import shared as gpt2_model
from trainmark.workloads.llama import shared as llama_model
from trainmark.workloads.transformers.conformance import observe
from trainmark.workloads.transformers.flops import TransformerShape

Weights = Mapping[str, Tensor]


def gpt2(w: Weights, batch: list[Tensor], shape: TransformerShape) -> tuple[Tensor, Tensor]:
    """Return the sum of the losses, and the labels that it is over."""
    tokens, targets = batch
    x = w["token_embedding.weight"][tokens] + w["position_embedding.weight"][: tokens.shape[1]]
    for index in range(shape.layers):
        b = f"blocks.{index}."
        y = layer_norm(w, b + "norm1", x, gpt2_model.NORM_EPSILON)
        query, key, value = linear(w, b + "qkv", y).chunk(3, -1)
        y = attention(query, key, value, shape, is_causal=True)
        x = x + linear(w, b + "out", y)
        y = functional.gelu(
            linear(w, b + "up", layer_norm(w, b + "norm2", x, gpt2_model.NORM_EPSILON)), approximate="tanh"
        )
        x = x + linear(w, b + "down", y)
    logits = layer_norm(w, "norm", x, gpt2_model.NORM_EPSILON) @ w["token_embedding.weight"].T
    return summed_loss(logits, targets), (targets >= 0).sum()


def llama(w: Weights, batch: list[Tensor], shape: TransformerShape) -> tuple[Tensor, Tensor]:
    tokens, targets = batch
    x = w["token_embedding.weight"][tokens]

    def norm(name: str, x: Tensor) -> Tensor:
        return functional.rms_norm(x, x.shape[-1:], w[f"{name}.scale"], llama_model.NORM_EPSILON)

    for index in range(shape.layers):
        b = f"blocks.{index}."
        y = norm(b + "norm1", x)
        query, key = (rotated(split(linear(w, b + part, y), shape.head_width)) for part in ("query", "key"))
        value = split(linear(w, b + "value", y), shape.head_width)
        y = functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        x = x + linear(w, b + "out", y.transpose(1, 2).flatten(2))
        y = norm(b + "norm2", x)
        x = x + linear(w, b + "down", functional.silu(linear(w, b + "gate", y)) * linear(w, b + "up", y))
    return summed_loss(linear(w, "head", norm("norm", x)), targets), (targets >= 0).sum()


def bert(w: Weights, batch: list[Tensor], shape: TransformerShape) -> tuple[Tensor, Tensor]:
    tokens, segments, lengths, positions, labels, next_sentence = batch
    places = torch.arange(tokens.shape[1])
    x = w["token_embedding.weight"][tokens] + w["segment_embedding.weight"][segments]
    x = layer_norm(
        w, "embedding_norm", x + w["position_embedding.weight"][: len(places)], bert_model.NORM_EPSILON
    )
    mask = (places < lengths[:, None])[:, None, None, :]
    for index in range(shape.layers):
        b = f"blocks.{index}."
        query, key, value = linear(w, b + "qkv", x).chunk(3, -1)
        y = linear(w, b + "out", attention(query, key, value, shape, attn_mask=mask))
        x = layer_norm(w, b + "norm1", x + y, bert_model.NORM_EPSILON)
        y = linear(w, b + "down", functional.gelu(linear(w, b + "up", x)))
        x = layer_norm(w, b + "norm2", x + y, bert_model.NORM_EPSILON)
    masked = x[torch.arange(len(x))[:, None], positions]
    y = layer_norm(
        w, "transform_norm", functional.gelu(linear(w, "transform", masked)), bert_model.NORM_EPSILON
    )
    predicted = summed_loss(y @ w["token_embedding.weight"].T + w["head.bias"], labels)
    follows = linear(w, "next_sentence", torch.tanh(linear(w, "pooler", x[:, 0])))
    losses = torch.stack([predicted, summed_loss(follows, next_sentence)])
    return losses, torch.stack([(labels >= 0).sum(), torch.tensor(len(x))])


def linear(w: Weights, name: str, x: Tensor) -> Tensor:
    return functional.linear(x, w[f"{name}.weight"], w.get(f"{name}.bias"))


def layer_norm(w: Weights, name: str, x: Tensor, epsilon: float) -> Tensor:
    return functional.layer_norm(x, x.shape[-1:], w[f"{name}.scale"], w[f"{name}.bias"], epsilon)


def split(x: Tensor, width: int) -> Tensor:
    return x.unflatten(-1, (-1, width)).transpose(1, 2)


def attention(query: Tensor, key: Tensor, value: Tensor, shape: TransformerShape, **mask) -> Tensor:
    heads = (split(x, shape.head_width) for x in (query, key, value))
    return functional.scaled_dot_product_attention(*heads, **mask).transpose(1, 2).flatten(2)


def rotated(x: Tensor) -> Tensor:
    """Multiply pairs, as complex numbers, by the phase of their position."""
    half = x.shape[-1] // 2
    pairs = torch.complex(x[..., :half], x[..., half:])
    places, exponents = torch.arange(x.shape[-2], dtype=torch.float64), torch.arange(half) * 2.0 / x.shape[-1]
    angles = places[:, None] / llama_model.ROTARY_BASE ** exponents.double()
    turned = pairs * torch.polar(torch.ones_like(angles), angles).to(pairs.dtype)
    return torch.cat([turned.real, turned.imag], -1)


def summed_loss(logits: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(logits.flatten(0, -2), labels.flatten(), ignore_index=-1, reduction="sum")


NETWORKS = {
    "gpt2": (gpt2, gpt2_model, observe.decoder_batches),
    "llama": (llama, llama_model, observe.decoder_batches),
    "bert": (bert, bert_model, observe.bert_batches),
}


@dataclass(frozen=True)
class Recipe:
    """Ordinary values, which conformance replaces by its own."""

    optimizer: str = "adamw"
    beta1: float = 0.9
    beta2: float = 0.95
    epsilon: float = 1e-8
    clip: float = 1.0
    weight_decay: float = 0.1


@dataclass
class Options:
    recipe: Recipe
    rank: int = 0


@dataclass
class TorchTraining:
    """One rank; a step's sequences are split into micro-batches."""

    family: str
    recipe: Recipe
    dtype: torch.dtype
    accumulate: int = 1
    weights: dict[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.network, model, self.make_batches = NETWORKS[self.family]
        self.shape = model.SIZES[observe.SIZE]
        self.shapes = model.shapes(self.shape)

    def load(self, tensors, momenta=None, rest=None) -> None:
        assert momenta is None and rest is None
        self.weights = {
            name: torch.tensor(value, dtype=self.dtype, requires_grad=True) for name, value in tensors.items()
        }
        matrices = [weight for weight in self.weights.values() if weight.ndim >= 2]
        others = [weight for weight in self.weights.values() if weight.ndim < 2]
        recipe = self.recipe
        make = Lamb if recipe.optimizer == "lamb" else torch.optim.AdamW
        self.optimizer = make(
            [
                {"params": matrices, "weight_decay": recipe.weight_decay},
                {"params": others, "weight_decay": 0},
            ],
            lr=1.0,
            betas=(recipe.beta1, recipe.beta2),
            eps=recipe.epsilon,
        )

    def place(self, *arrays) -> list[Tensor]:
        return [torch.from_numpy(array).long() for array in arrays]

    def step(self, *batch: Tensor, rate: float) -> Tensor:
        counts = self.network(self.weights, list(batch), self.shape)[1]
        parts = zip(*(array.chunk(self.accumulate) for array in batch), strict=True)
        total = torch.zeros((), dtype=self.dtype)
        for part in parts:
            loss = (self.network(self.weights, list(part), self.shape)[0] / counts).sum()
            loss.backward()
            total += loss.detach()
        torch.nn.utils.clip_grad_norm_(self.weights.values(), self.recipe.clip)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.optimizer.zero_grad()
        return total

    def read(self, loss: Tensor):
        return loss.item

    def tensors(self) -> dict[str, np.ndarray]:
        return {name: weight.detach().numpy().copy() for name, weight in self.weights.items()}

    def momenta(self) -> dict[str, np.ndarray]:
        return {
            f"{order}/{name}": self.optimizer.state[weight][key].numpy().copy()
            for order, key in (("first", "exp_avg"), ("second", "exp_avg_sq"))
            for name, weight in self.weights.items()
        }

    def parameters(self) -> int:
        return sum(weight.numel() for weight in self.weights.values())


class Lamb(torch.optim.Optimizer):
    """You et al. 2020, algorithm 2; a tensor without weight decay takes Adam's step."""

    def __init__(self, groups, lr: float, betas: tuple[float, float], eps: float) -> None:
        super().__init__(groups, {"lr": lr, "betas": betas, "eps": eps})
        self.steps = 0

    @torch.no_grad()
    def step(self) -> None:
        self.steps += 1
        for group in self.param_groups:
            one, two = group["betas"]
            for weight in group["params"]:
                state = self.state[weight]
                first = state.setdefault("exp_avg", torch.zeros_like(weight)).lerp_(weight.grad, 1 - one)
                second = state.setdefault("exp_avg_sq", torch.zeros_like(weight))
                second.mul_(two).addcmul_(weight.grad, weight.grad, value=1 - two)
                mean, square = first / (1 - one**self.steps), second / (1 - two**self.steps)
                update = mean / (square.sqrt() + group["eps"])
                if group["weight_decay"]:
                    update = update + group["weight_decay"] * weight
                    update *= weight.norm() / update.norm()
                weight -= group["lr"] * update
