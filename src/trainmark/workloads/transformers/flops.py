"""FLOP and bytes of a transformer, counted exactly: a decoder's for one token, BERT's for one sequence.

Every matrix product counts once, a multiply-add as two FLOP; looking up an embedding is no product, the head
is one. Backward does each product twice, for the gradients of its two operands. Attention counts the pairs
that it computes: under a causal mask the position t attends to t + 1 keys, T(T + 1)/2 pairs a sequence, in
QKᵀ and in PV. Norms, activations, biases and the soft-max are left out, as everywhere.
"""

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


def decoder_flops(shape, length):
    """Return those of one token's forward and backward pass, the mean over a sequence.

    6 × weights of the products + 6 · layers · width · (length + 1): a whole number.
    """
    return _trained(shape, length, None) // length


def bert_flops(shape, length, predicted):
    """Return those of one sequence; `predicted` tokens reach the MLM head, masked ones or all."""
    return _trained(shape, length, predicted)


def decoder_hardware_flops(shape, length, recompute="none"):
    """Return what is computed for one token: with "blocks" recomputed, each block's forward pass twice.

    A fused attention kernel computes QKᵀ a second time in its backward pass; that is part of the kernel and
    not counted.
    """
    return decoder_flops(shape, length) + _recomputed(shape, length, recompute) // length


def bert_hardware_flops(shape, length, predicted, recompute="none"):
    return bert_flops(shape, length, predicted) + _recomputed(shape, length, recompute)


def attention_flops(shape, length, recompute="none"):
    """Return what QKᵀ, PV and their gradients take of all that is computed for one sequence."""
    passes = FORWARD_AND_BACKWARD + (recompute == "blocks")
    return passes * MULTIPLY_ADD * shape.layers * 2 * shape.width * attended_pairs(shape, length)


def _trained(shape, length, predicted):
    work = shape.layers * block_work(shape, length) + heads_work(shape, length, predicted)
    return FORWARD_AND_BACKWARD * MULTIPLY_ADD * work


def _recomputed(shape, length, recompute):
    if recompute not in RECOMPUTE:
        raise ValueError("recompute is one of {}, not {!r}".format(", ".join(RECOMPUTE), recompute))
    return MULTIPLY_ADD * shape.layers * block_work(shape, length) if recompute == "blocks" else 0


def decoder_bytes(shape, parameters, element, tokens, micro_batches=1, shards=1):
    """Return the fewest bytes that a step must move for one token.

    Each product's operands and result are read or written once in each of its three passes, with everything
    else on their way: activations in `element` bytes. Fused attention never writes its pairs. What moves
    once for all the `tokens` of a device's step is shared out among them: see `_state_bytes`.
    """
    activations = element * (shape.layers * _block_elements(shape) + 3 * (shape.width + shape.vocabulary))
    return activations + _state_bytes(parameters, element, micro_batches, shards) / tokens


def bert_bytes(shape, length, predicted, parameters, element, sequences, micro_batches=1, shards=1):
    """Return those for one sequence of the `sequences` of a device's step."""
    masked = predicted * 3 * (3 * shape.width + shape.vocabulary)
    pooled = 3 * (3 * shape.width + 2)
    activations = element * (length * shape.layers * _block_elements(shape) + masked + pooled)
    return activations + _state_bytes(parameters, element, micro_batches, shards) / sequences


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
    samples = length if shape.causal else 1
    parts = {}
    for name, dimensions in tensors.items():
        part = _part(name)
        parts[part] = parts.get(part, 0) + count(dimensions)
    mlp = length * mlp_weights(shape)
    yield parts["embedding"], 0
    for index in range(shape.layers):
        yield parts[index, "attention"], (block_work(shape, length) - mlp) // samples
        yield parts[index, "mlp"], mlp // samples
    yield parts["head"], heads_work(shape, length, predicted) // samples


def _part(name):
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


def parameters(tensors):
    return sum(map(count, tensors.values()))
