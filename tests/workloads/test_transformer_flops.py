"""FLOP of transformers: by hand, by a framework's own counter, and as other codes count them."""

from __future__ import annotations

import pytest

from trainmark.workloads.bert import shared as bert
from trainmark.workloads.gpt2 import shared as gpt2
from trainmark.workloads.llama import shared as llama
from trainmark.workloads.transformers import flops
from trainmark.workloads.transformers.flops import conventions

GPT2, LLAMA, BERT = gpt2.SIZES["124m"], llama.SIZES["8b"], bert.SIZES["base"]
FAMILIES = {"gpt2": gpt2, "llama": llama, "bert": bert}


def test_gpt2_124m_at_1024_counts_798_million_flop_a_token():
    block = 768 * (3 * 768) + 768 * 768 + 2 * 768 * 3072
    products = 12 * block + 50304 * 768
    assert (block, products) == (7_077_888, 123_568_128)
    pairs = 1024 * 1025 // 2  # of a sequence; QKᵀ and PV are 768 multiply-adds for each
    attention = 12 * 2 * 768 * pairs // 1024
    assert flops.sample_flops(GPT2, 1024) == 6 * (products + attention) == 798_087_168


def test_bert_base_at_128_counts_70_gflop_a_sequence_with_20_predictions():
    blocks = 12 * (128 * 7_077_888 + 2 * 768 * 128 * 128)
    heads = 20 * 768 * (768 + 30528) + 768 * 768 + 2 * 768
    assert flops.sample_flops(BERT, 128, 20) == 6 * (blocks + heads) == 69_929_542_656
    assert flops.sample_flops(BERT, 128, 128) - flops.sample_flops(BERT, 128, 20) == 6 * 108 * 768 * (
        768 + 30528
    )


def test_gpt2_124m_as_other_codes_count_it():
    whole, positions, attention = 124_475_904, 1024 * 768, 12 * 12 * 768 * 1024
    assert conventions(GPT2, 1024, gpt2.shapes(GPT2)) == {
        "nanoGPT": 6 * (whole - positions) + attention,
        "llm.c": 6 * whole + attention // 2,
        "Megatron-LM": 6 * 123_568_128 + attention // 2,
        "torchtitan": 6 * (whole - positions) + attention,
        "MaxText": 6 * 123_568_128 + attention // 2,
        "llm-foundry": 6 * whole + attention,
    }


@pytest.mark.parametrize(("code", "published"), [("Megatron-LM", 51.47), ("torchtitan", 57.91)])
def test_llama_3_8b_at_8192_comes_out_as_published(code, published):
    """One run at 14,451 tokens/s is 744 TFLOP/s by the one and 837 by the other."""
    count = conventions(LLAMA, 8192, llama.shapes(LLAMA))[code]
    assert round(count / 1e9, 2) == published


def test_megatron_halves_attention_whatever_the_mask_and_pads_the_vocabulary():
    products = 12 * 7_077_888 + 768 * 30592  # 30,528 padded to a multiple of 128
    counted = conventions(BERT, 128, bert.shapes(BERT))["Megatron-LM"]
    assert counted == 128 * (6 * products + 6 * 12 * 768 * 128)


def test_recomputed_blocks_are_their_forward_pass_once_more():
    forward = 2 * 12 * flops.block_work(GPT2, 1024) // 1024
    recomputed = flops.hardware_flops(GPT2, 1024, "blocks")
    assert recomputed == flops.sample_flops(GPT2, 1024) + forward
    assert flops.hardware_flops(GPT2, 1024) == flops.sample_flops(GPT2, 1024)
    more = flops.hardware_flops(BERT, 128, "blocks", 20) - flops.sample_flops(BERT, 128, 20)
    assert more == 2 * 12 * flops.block_work(BERT, 128)


def test_an_unknown_way_to_recompute_is_refused():
    with pytest.raises(ValueError, match="one of none, blocks, not 'all'"):
        flops.hardware_flops(GPT2, 1024, "all")


@pytest.mark.parametrize("name", FAMILIES)
def test_layers_have_all_parameters_and_all_of_the_forward_pass(name):
    family = FAMILIES[name]
    shape = next(iter(family.SIZES.values()))
    tensors, predicted = family.shapes(shape), None if shape.causal else 20
    layers = list(flops.layers(shape, 128, tensors, predicted))
    whole = flops.sample_flops(shape, 128, predicted)
    assert sum(parameters for parameters, _ in layers) == flops.parameter_count(tensors)
    assert 6 * sum(work for _, work in layers) == whole
    assert len(layers) == 2 * shape.layers + 2


def test_the_fewest_bytes_of_a_token_share_out_what_a_step_moves_once():
    shape = gpt2.SIZES["mini"]
    width, hidden, parameters = 128, 512, 1000
    block = 3 * 4 * width + 3 * 2 * width + 12 * width + 3 * (width + hidden) + 3 * (hidden + width)
    activations = 2 * (2 * block + 3 * (width + 512))
    state = parameters * (2 * 3 * 2 + 28 / 4)
    moved = flops.sample_bytes(shape, 64, parameters, element=2, samples=64, micro_batches=2, shards=4)
    assert moved == activations + state / 64


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


def counted(torch, shape, length, predicted):
    """What FlopCounterMode counts of a forward and backward pass written out in plain products."""
    from torch.utils.flop_counter import FlopCounterMode

    def weight(outputs, inputs):
        return torch.zeros(outputs, inputs, requires_grad=True)

    width, heads, depth = shape.width, shape.heads, shape.head_width
    x = torch.zeros(length, width, requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        for _ in range(shape.layers):
            query = (x @ weight(width, width).T).view(length, heads, depth).transpose(0, 1)
            key, value = (
                (x @ weight(shape.key_value_width, width).T)
                .view(length, shape.key_value_heads, depth)
                .transpose(0, 1)
                .repeat_interleave(heads // shape.key_value_heads, 0)
                for _ in range(2)
            )
            mixed = (query @ key.transpose(1, 2)).softmax(-1) @ value
            x = x + mixed.transpose(0, 1).reshape(length, width) @ weight(width, width).T
            inner = x @ weight(shape.hidden, width).T
            if shape.gated:
                inner = inner * (x @ weight(shape.hidden, width).T)
            x = x + inner @ weight(width, shape.hidden).T
        if predicted is None:
            total = (x @ weight(shape.vocabulary, width).T).sum()
        else:
            masked = x[:predicted] @ weight(width, width).T
            pooled = x[:1] @ weight(width, width).T
            total = (masked @ weight(shape.vocabulary, width).T).sum() + (pooled @ weight(2, width).T).sum()
        total.backward()
    return counter.get_total_flops()


@pytest.mark.parametrize("name", FAMILIES)
def test_pytorchs_own_counter_agrees_but_for_the_masked_half_of_attention(torch, name):
    """It counts a dense product whole: T² pairs, where a causal mask leaves T(T + 1)/2."""
    shape, length = FAMILIES[name].SIZES["mini"], 16
    if shape.causal:
        exact = length * flops.sample_flops(shape, length)
        masked = 12 * shape.layers * shape.width * length * (length - 1) // 2
        assert counted(torch, shape, length, None) == exact + masked
    else:
        assert counted(torch, shape, length, 3) == flops.sample_flops(shape, length, 3)
