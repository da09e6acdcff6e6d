"""FLOP of one token as other codes count them, each as its source had it in 2026.

They differ in which parameters count, in whether causal attention is half, and in what the head is. L layers,
width C, length T, N parameters:

nanoGPT       model.py estimate_mfu: 6N + 12·L·C·T, N without position embeddings
llm.c         train_gpt2.cu gpt2_estimate_mfu: 6N + 6·L·C·T, N with everything
Megatron-LM   megatron/training/training.py num_floating_point_operations: 6 × the products' weights, the
              vocabulary padded to a multiple of 128, and 6·L·C·T whatever the mask
torchtitan    torchtitan/models/utils.py: 6 × (N less embeddings that are no head) + 12·L·C·T
MaxText       maxtext_utils.py calculate_tflops_training_per_device: as Megatron-LM, without the padding
llm-foundry   scripts/train/benchmarking/collect_results.py: 6N + 12·L·C·T, N with everything
PaLM          Chowdhery et al. 2022, appendix B: 6N + 12·L·C·T, N with everything

The MFU of most is over a peak from a table; nanoGPT's is over 312e12, whatever the device.
"""

from trainmark.workloads.transformers.flops import attention_weights, count, mlp_weights, parameters

VOCABULARY_MULTIPLE = 128  # Megatron-LM's --make-vocab-size-divisible-by


def decoder_conventions(shape, length, tensors):
    """Return the FLOP of one token by the code that counts so; `tensors` are shapes by canonical name."""
    whole = parameters(tensors)
    positions = _of(tensors, "position_embedding.weight")
    looked_up = positions + (0 if shape.tied else _of(tensors, "token_embedding.weight"))
    full, causal = _full_attention(shape, length), _full_attention(shape, length) // 2
    return {
        "nanoGPT": 6 * (whole - positions) + full,
        "llm.c": 6 * whole + causal,
        "Megatron-LM": megatron_flops(shape, length),
        "torchtitan": 6 * (whole - looked_up) + full,
        "MaxText": _products(shape, shape.vocabulary) + causal,
        "llm-foundry": 6 * whole + full,
    }


def bert_conventions(shape, length, tensors):
    """Return the FLOP of one sequence. Of the codes above Megatron-LM trains BERT; PaLM's rule fits any."""
    dense = 6 * parameters(tensors) + _full_attention(shape, length)
    return {"Megatron-LM": length * megatron_flops(shape, length), "PaLM": length * dense}


def megatron_flops(shape, length):
    """Return those of one token; without a causal mask attention is half as well, and all reach the head."""
    padded = -(-shape.vocabulary // VOCABULARY_MULTIPLE) * VOCABULARY_MULTIPLE
    return _products(shape, padded) + _full_attention(shape, length) // 2


def _products(shape, vocabulary):
    block = attention_weights(shape) + mlp_weights(shape)
    return 6 * (shape.layers * block + shape.width * vocabulary)


def _full_attention(shape, length):
    """Return those of QKᵀ and PV, forward and backward, as if every token attended to all."""
    return 12 * shape.layers * shape.width * length


def _of(tensors, name):
    return count(tensors[name]) if name in tensors else 0
