"""FLOP and bytes of a transformer of a given shape, counted exactly, and as other codes count them.

A decoder's are for one token, BERT's for one sequence. Every matrix product counts once, a multiply-add
as two FLOP; looking up an embedding is no product, the head is one. Backward does each product twice, for
the gradients of its two operands. Attention counts the pairs that it computes: under a causal mask the
position t attends to t + 1 keys, T(T + 1)/2 pairs a sequence, in QKᵀ and in PV. Norms, activations,
biases and the soft-max are left out, as everywhere.

The conventions of others, each as its source had it in 2026, differ in which parameters count, in whether
causal attention is half, and in what the head is. L layers, width C, length T, N parameters:

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

from typing import NamedTuple


class TransformerShape(NamedTuple):
    """One size of a family.

    `hidden` is the width inside the MLP, `positions` the longest sequence, `gated` an MLP with three matrices
    (SwiGLU). Attention is `causal` in a decoder. A head that is `tied` shares the token embedding's matrix.
    """

    layers: int
    width: int
    heads: int
    key_value_heads: int
    hidden: int
    vocabulary: int
    positions: int
    causal: bool = True
    gated: bool = False
    tied: bool = True

    @property
    def head_width(self):
        return self.width // self.heads

    @property
    def key_value_width(self):
        return self.key_value_heads * self.head_width


FORWARD_AND_BACKWARD = 3
MULTIPLY_ADD = 2
RECOMPUTE = ("none", "blocks")

# AdamW and LAMB read gradient, weight and both moments, and write weight and moments, all in float32.
OPTIMIZER_BYTES = 7 * 4


def attention_weights(shape):
    """Return the elements of one block's query, key, value and output matrices."""
    return 2 * shape.width * (shape.width + shape.key_value_width)


def mlp_weights(shape):
    return (3 if shape.gated else 2) * shape.width * shape.hidden


def block_work(shape, length):
    """Return the multiply-adds of one block's forward pass over a sequence."""
    weights = attention_weights(shape) + mlp_weights(shape)
    return length * weights + 2 * shape.width * attended_pairs(shape, length)


def attended_pairs(shape, length):
    """Return how many pairs of positions attention computes in a sequence."""
    return length * (length + 1) // 2 if shape.causal else length**2


def heads_work(shape, length, predicted):
    """Return those of what follows the blocks.

    A decoder's head has all tokens. BERT's has the `predicted` ones behind a square matrix, and the pooler
    with next-sentence prediction has the first.
    """
    if shape.causal:
        return length * shape.width * shape.vocabulary
    masked = predicted * shape.width * (shape.width + shape.vocabulary)
    return masked + shape.width * (shape.width + 2)


def samples_per_sequence(shape, length):
    """Return how many samples a sequence is: a decoder's are its tokens, BERT's the sequence itself."""
    return length if shape.causal else 1


def sample_flops(shape, length, predicted=None):
    """Return those of one sample's forward and backward pass; `predicted` tokens reach BERT's MLM head.

    A decoder's are the mean over a sequence, 6 × weights of the products + 6 · layers · width · (length + 1):
    a whole number.
    """
    work = shape.layers * block_work(shape, length) + heads_work(shape, length, predicted)
    return FORWARD_AND_BACKWARD * MULTIPLY_ADD * work // samples_per_sequence(shape, length)


def hardware_flops(shape, length, recompute="none", predicted=None):
    """Return what is computed for one sample: with "blocks" recomputed, each block's forward pass twice.

    A fused attention kernel computes QKᵀ a second time in its backward pass; that is part of the kernel and
    not counted.
    """
    if recompute not in RECOMPUTE:
        raise ValueError("recompute is one of {}, not {!r}".format(", ".join(RECOMPUTE), recompute))
    again = MULTIPLY_ADD * shape.layers * block_work(shape, length) if recompute == "blocks" else 0
    return sample_flops(shape, length, predicted) + again // samples_per_sequence(shape, length)


def attention_flops(shape, length, recompute="none"):
    """Return what QKᵀ, PV and their gradients take of all that is computed for one sequence."""
    passes = FORWARD_AND_BACKWARD + (recompute == "blocks")
    return passes * MULTIPLY_ADD * shape.layers * 2 * shape.width * attended_pairs(shape, length)


def sample_bytes(shape, length, parameters, element, samples, micro_batches=1, shards=1, predicted=None):
    """Return the fewest bytes that a step must move for one sample.

    Each product's operands and result are read or written once in each of its three passes, with everything
    else on their way: activations in `element` bytes. Fused attention never writes its pairs. What moves
    once for all the `samples` of a device's step is shared out among them: see `_state_bytes`.
    """
    tokens = length // samples_per_sequence(shape, length)
    elements = tokens * shape.layers * _block_elements(shape) + _head_elements(shape, predicted)
    return element * elements + _state_bytes(parameters, element, micro_batches, shards) / samples


def _head_elements(shape, predicted):
    """Return how many numbers a sample moves behind the blocks."""
    if shape.causal:
        return 3 * (shape.width + shape.vocabulary)
    masked, pooled = predicted * 3 * (3 * shape.width + shape.vocabulary), 3 * (3 * shape.width + 2)
    return masked + pooled


def _block_elements(shape):
    """Return how many numbers a token moves in one block.

    A linear layer of i inputs and o outputs moves 3(i + o): forward reads i and writes o, dgrad reads o and
    writes i, wgrad reads both. Query, key and value are one product, as are gate and up. Attention reads
    query, key and value and writes its output, and backward reads these and a gradient and writes three.
    """
    width, grouped, hidden = shape.width, shape.key_value_width, shape.hidden
    projections = 3 * (width + width + 2 * grouped) + 3 * 2 * width
    attention = 6 * width + 6 * grouped
    up = (2 if shape.gated else 1) * hidden
    return projections + attention + 3 * (width + up) + 3 * (hidden + width)


def _state_bytes(parameters, element, micro_batches, shards):
    """Return what a step moves whatever its batch is.

    Each micro-batch reads the weights twice and writes their gradients; the optimizer's state, which `shards`
    devices may share, moves once.
    """
    return parameters * (3 * element * micro_batches + OPTIMIZER_BYTES / shards)


def layers(shape, length, tensors, predicted=None):
    """Yield (parameters, multiply-adds of the forward pass for one sample) from input to output.

    `tensors` are the family's shapes by canonical name. The gradient of a tied matrix is complete at the
    input, where the embedding is.
    """
    samples = samples_per_sequence(shape, length)
    parts = {}
    for name, dimensions in tensors.items():
        part = _layer_of(name)
        parts[part] = parts.get(part, 0) + count(dimensions)
    mlp = length * mlp_weights(shape)
    yield parts["embedding"], 0
    for index in range(shape.layers):
        yield parts[index, "attention"], (block_work(shape, length) - mlp) // samples
        yield parts[index, "mlp"], mlp // samples
    yield parts["head"], heads_work(shape, length, predicted) // samples


def _layer_of(name):
    words = name.split(".")
    if words[0] == "blocks":
        return int(words[1]), "mlp" if words[2] in ("norm2", "gate", "up", "down") else "attention"
    return "embedding" if "embedding" in words[0] else "head"


def count(dimensions):
    """Return how many numbers a tensor of these dimensions has."""
    number = 1
    for extent in dimensions:
        number *= extent
    return number


def parameter_count(tensors):
    return sum(map(count, tensors.values()))


VOCABULARY_MULTIPLE = 128  # Megatron-LM's --make-vocab-size-divisible-by


def conventions(shape, length, tensors):
    """Return the FLOP of one sample by the code that counts so; `tensors` are shapes by canonical name.

    Of the codes above Megatron-LM trains BERT; PaLM's rule fits any.
    """
    whole, full = parameter_count(tensors), _full_attention(shape, length)
    if not shape.causal:
        return {"Megatron-LM": length * megatron_flops(shape, length), "PaLM": length * (6 * whole + full)}
    positions = _tensor_size(tensors, "position_embedding.weight")
    looked_up = positions + (0 if shape.tied else _tensor_size(tensors, "token_embedding.weight"))
    return {
        "nanoGPT": 6 * (whole - positions) + full,
        "llm.c": 6 * whole + full // 2,
        "Megatron-LM": megatron_flops(shape, length),
        "torchtitan": 6 * (whole - looked_up) + full,
        "MaxText": _product_flops(shape, shape.vocabulary) + full // 2,
        "llm-foundry": 6 * whole + full,
    }


def megatron_flops(shape, length):
    """Return those of one token; without a causal mask attention is half as well, and all reach the head."""
    padded = -(-shape.vocabulary // VOCABULARY_MULTIPLE) * VOCABULARY_MULTIPLE
    return _product_flops(shape, padded) + _full_attention(shape, length) // 2


def _product_flops(shape, vocabulary):
    block = attention_weights(shape) + mlp_weights(shape)
    return 6 * (shape.layers * block + shape.width * vocabulary)


def _full_attention(shape, length):
    """Return those of QKᵀ and PV, forward and backward, as if every token attended to all."""
    return 12 * shape.layers * shape.width * length


def _tensor_size(tensors, name):
    return count(tensors[name]) if name in tensors else 0
