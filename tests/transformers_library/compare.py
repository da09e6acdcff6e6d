"""Our GPT-2, BERT and Llama against those of the `transformers` package, built from a config: prints JSON.

Run by a Python that has torch, with `transformers` on its path. Weights and batches are those of the
conformance; gradients are compared under the library's names.
"""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional
from transformers import (
    BertConfig,
    BertForPreTraining,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
)

from trainmark.workloads.transformers.conformance import observe
from trainmark.workloads.transformers.flops import TransformerShape
from trainmark.workloads.transformers.training import canonical_parameters

Tensors = dict[str, torch.Tensor]


def gpt2(shape: TransformerShape) -> torch.nn.Module:
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=shape.vocabulary,
            n_positions=shape.positions,
            n_embd=shape.width,
            n_layer=shape.layers,
            n_head=shape.heads,
            n_inner=shape.hidden,
            bos_token_id=0,
            eos_token_id=0,
        )
    )


def bert(shape: TransformerShape) -> torch.nn.Module:
    return BertForPreTraining(
        BertConfig(
            vocab_size=shape.vocabulary,
            hidden_size=shape.width,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            intermediate_size=shape.hidden,
            max_position_embeddings=shape.positions,
            pad_token_id=None,  # it would have no gradient where a text contains it
        )
    )


def llama(shape: TransformerShape) -> torch.nn.Module:
    from trainmark.workloads.llama.shared import NORM_EPSILON, ROTARY_BASE

    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=shape.vocabulary,
            hidden_size=shape.width,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            num_key_value_heads=shape.key_value_heads,
            intermediate_size=shape.hidden,
            max_position_embeddings=shape.positions,
            rms_norm_eps=NORM_EPSILON,
            rope_parameters={"rope_type": "default", "rope_theta": ROTARY_BASE},
        )
    )


LIBRARY = {"gpt2": gpt2, "bert": bert, "llama": llama}
# The library's modules by ours: those of a block, then the others.
BLOCKS = {
    "gpt2": (
        "transformer.h.{}.",
        {
            "norm1": "ln_1",
            "qkv": "attn.c_attn",
            "out": "attn.c_proj",
            "norm2": "ln_2",
            "up": "mlp.c_fc",
            "down": "mlp.c_proj",
        },
    ),
    "bert": (
        "bert.encoder.layer.{}.",
        {
            "query": "attention.self.query",
            "key": "attention.self.key",
            "value": "attention.self.value",
            "out": "attention.output.dense",
            "norm1": "attention.output.LayerNorm",
            "up": "intermediate.dense",
            "down": "output.dense",
            "norm2": "output.LayerNorm",
        },
    ),
    "llama": (
        "model.layers.{}.",
        {
            "norm1": "input_layernorm",
            "query": "self_attn.q_proj",
            "key": "self_attn.k_proj",
            "value": "self_attn.v_proj",
            "out": "self_attn.o_proj",
            "norm2": "post_attention_layernorm",
            "gate": "mlp.gate_proj",
            "up": "mlp.up_proj",
            "down": "mlp.down_proj",
        },
    ),
}
OTHERS = {
    "gpt2": {
        "token_embedding": "transformer.wte",
        "position_embedding": "transformer.wpe",
        "norm": "transformer.ln_f",
    },
    "bert": {
        "token_embedding": "bert.embeddings.word_embeddings",
        "position_embedding": "bert.embeddings.position_embeddings",
        "segment_embedding": "bert.embeddings.token_type_embeddings",
        "embedding_norm": "bert.embeddings.LayerNorm",
        "pooler": "bert.pooler.dense",
        "next_sentence": "cls.seq_relationship",
        "transform": "cls.predictions.transform.dense",
        "transform_norm": "cls.predictions.transform.LayerNorm",
        "head": "cls.predictions",
    },
    "llama": {"token_embedding": "model.embed_tokens", "norm": "model.norm", "head": "lm_head"},
}


def translated(family: str, tensors: Tensors) -> Tensors:
    """Return tensors by canonical name, weights or gradients, as the library names and lays them out."""
    layout: Tensors = {}
    for name, tensor in tensors.items():
        module, _, leaf = name.replace(".scale", ".weight").rpartition(".")
        if module.startswith("blocks.") and family == "bert" and module.endswith(".qkv"):
            for part, third in zip(("query", "key", "value"), tensor.chunk(3), strict=True):
                layout[library_module(family, module.replace("qkv", part)) + f".{leaf}"] = third
        elif module.startswith("blocks.") and family == "gpt2" and tensor.dim() == 2:
            layout[library_module(family, module) + f".{leaf}"] = tensor.t()  # (inputs, outputs)
        else:
            layout[library_module(family, module) + f".{leaf}"] = tensor
    return layout


def library_module(family: str, module: str) -> str:
    if not module.startswith("blocks."):
        return OTHERS[family][module]
    _, index, part = module.split(".")
    prefix, names = BLOCKS[family]
    return prefix.format(index) + names[part]


@dataclass
class Output:
    """Logits, their loss in float64 with its gradients, and the loss that the code itself gives."""

    logits: list[torch.Tensor]
    gradients: Tensors
    own_loss: float


def cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(logits.double().flatten(0, -2), labels.flatten().long(), ignore_index=-1)


def ours(family: str, engine: str, weights: Tensors, batch: list[torch.Tensor]) -> Output:
    program = importlib.import_module(f"trainmark.workloads.{family}.shared")
    arguments = [*observe.arguments(), "--engine", engine, "--conform", "yes"]
    opt = program.SPEC.parse([*arguments, *(["--predictions", "all"] if family == "bert" else [])], family)
    module = importlib.import_module(f"trainmark.workloads.{family}.pytorch")
    model = module.build(opt).double()
    parameters = canonical_parameters(model.network)
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name])
        own_loss = model(*batch, *model.normalizers(*batch)).item()
    network, head = model.network, model.network.head_weight
    if family == "bert":
        tokens, segments, lengths, positions, labels, next_sentence = batch
        hidden, sentence = network(tokens, segments, lengths)
        logits = [functional.linear(hidden, head, network.head.bias), sentence]
        targets = [module.labels_of_all(tokens, positions, labels), next_sentence]
    else:
        logits, targets = [functional.linear(network(batch[0]), head)], [batch[1]]
    loss = sum(map(cross_entropy, logits, targets))
    names, tensors = zip(*parameters.items(), strict=True)
    gradients = dict(zip(names, torch.autograd.grad(loss, tensors), strict=True))
    return Output(logits, translated(family, gradients), own_loss)


def library(family: str, shape: TransformerShape, weights: Tensors, batch: list[torch.Tensor]) -> Output:
    model = LIBRARY[family](shape).eval().double()
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for name, tensor in translated(family, weights).items():
            parameters[name].copy_(tensor)
    if family == "bert":
        logits, targets, own_loss = library_bert(model, batch)
    else:
        tokens, following = batch
        text = torch.cat([tokens, following[:, -1:]], 1).long()  # it shifts labels by itself
        output = model(input_ids=text, labels=text)
        logits, targets, own_loss = [output.logits[:, :-1]], [following], output.loss
    loss = sum(map(cross_entropy, logits, targets))
    gradients = torch.autograd.grad(loss, list(parameters.values()))
    return Output(logits, dict(zip(parameters, gradients, strict=True)), own_loss.item())


def library_bert(model: Any, batch: list[torch.Tensor]) -> tuple[list[Any], list[Any], Any]:
    tokens, segments, lengths, positions, labels, next_sentence = batch
    mask = torch.arange(tokens.shape[1]) < lengths[:, None]
    all_labels = torch.full_like(tokens, -1)
    for sequence, place, label in zip(*torch.where(labels >= 0), labels[labels >= 0], strict=True):
        all_labels[sequence, positions[sequence, place]] = label
    output = model(
        input_ids=tokens.long(),
        token_type_ids=segments.long(),
        attention_mask=mask.long(),
        labels=all_labels.long().masked_fill(all_labels < 0, -100),
        next_sentence_label=next_sentence.long(),
    )
    logits = [output.prediction_logits, output.seq_relationship_logits]
    return logits, [all_labels, next_sentence], output.loss


def relative_error(value: torch.Tensor, right: torch.Tensor) -> float:
    return float((value - right).abs().max() / right.abs().max())


def errors(family: str) -> dict[str, dict[str, float]]:
    """Return by engine how far ours is from the library, at most."""
    model = importlib.import_module(f"trainmark.workloads.{family}.shared")
    shape = model.SIZES[observe.SIZE]
    shapes = model.shapes(shape)
    weights = {
        name: torch.from_numpy(value).double() for name, value in observe.initial_weights(shapes).items()
    }
    batches = observe.bert_batches if family == "bert" else observe.decoder_batches
    batch = [torch.from_numpy(array) for array in batches(shapes, 0)[observe.GENTLE]]
    right = library(family, shape, weights, batch)
    compared = {}
    for engine in ("stock", "plain"):
        output = ours(family, engine, weights, batch)
        if output.gradients.keys() != right.gradients.keys():
            raise SystemExit(f"{family}: {sorted(output.gradients.keys() ^ right.gradients.keys())}")
        norm = max(float(gradient.abs().max()) for gradient in right.gradients.values())
        compared[engine] = {
            "logits": max(map(relative_error, output.logits, right.logits)),
            "loss": abs(output.own_loss / right.own_loss - 1),
            "gradients": max(
                float((output.gradients[name] - gradient).abs().max()) / norm
                for name, gradient in right.gradients.items()
            ),
        }
    return compared


def parameters(family: str) -> dict[str, list[int]]:
    """Return by size how many parameters ours and the library's model have; none of them takes memory."""
    model = importlib.import_module(f"trainmark.workloads.{family}.shared")
    counts = {}
    for size, shape in model.SIZES.items():
        with torch.device("meta"):
            theirs = sum(parameter.numel() for parameter in LIBRARY[family](shape).parameters())
        own = sum(int(torch.Size(dimensions).numel()) for dimensions in model.shapes(shape).values())
        counts[size] = [own, theirs]
    return counts


if __name__ == "__main__":
    torch.manual_seed(0)
    print(
        json.dumps(
            {family: {"errors": errors(family), "parameters": parameters(family)} for family in LIBRARY}
        )
    )
