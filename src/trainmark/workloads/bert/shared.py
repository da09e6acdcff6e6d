"""BERT for pre-training: its sizes, every tensor under its canonical name, and what the loop must know.

A linear layer's weight is (outputs, inputs). `qkv` gives query, key and value, in that order, one behind the
other. Norms come after the sums (post-norm), GELU is the exact one (erf), the MLM head ends in the token
embedding's matrix.
"""

import dataclasses

from trainmark.workloads.transformers import spec
from trainmark.workloads.transformers.flops import TransformerShape
from trainmark.workloads.transformers.spec import in_blocks, linear, norm

NORM_EPSILON = 1e-12
INITIAL_DEVIATION = 0.02
SEGMENTS = 2


def _size(layers, heads, width, vocabulary=30528):
    # 30,528 is 30,522 rounded up to a multiple of 8, as NVIDIA's trainings do for the matrix units.
    return TransformerShape(layers, width, heads, heads, 4 * width, vocabulary, positions=512, causal=False)


SIZES = {"base": _size(12, 12, 768), "large": _size(24, 16, 1024), "mini": _size(2, 4, 128, vocabulary=512)}


def predictions(length):
    """Return how many tokens of a sequence are masked at most: 20 of 128 and 80 of 512, as is usual."""
    return {128: 20, 512: 80}.get(length, max(1, round(0.15 * length)))


def shapes(shape):
    """Return the shape of every tensor by its canonical name, in the order of the forward pass."""
    width, hidden = shape.width, shape.hidden
    block = {
        **linear("qkv", width, 3 * width),
        **linear("out", width, width),
        **norm("norm1", width),
        **linear("up", width, hidden),
        **linear("down", hidden, width),
        **norm("norm2", width),
    }
    return {
        "token_embedding.weight": (shape.vocabulary, width),
        "position_embedding.weight": (shape.positions, width),
        "segment_embedding.weight": (SEGMENTS, width),
        **norm("embedding_norm", width),
        **in_blocks(shape.layers, block),
        **linear("pooler", width, width),
        **linear("next_sentence", width, 2),
        **linear("transform", width, width),
        **norm("transform_norm", width),
        "head.bias": (shape.vocabulary,),
    }


METRICS = {
    "loss": {"better": "lower", "title": "validation loss"},  # of the masked tokens, in nats
    "masked_accuracy": {"better": "higher", "title": "masked accuracy", "share": True},
    "sentence_accuracy": {"better": "higher", "title": "next-sentence accuracy", "share": True},
}
OPTIMIZERS = ("recipe", "lamb", "adamw")
PREDICTIONS = ("masked", "all")


class BertSpec(spec.TransformerSpec):
    """Masked tokens and the next sentence; a sample is a sequence, whatever its length."""

    unit, short_unit, metrics = "sequences", "seq", METRICS
    axes = (*spec.AXES, "optimizer", "predictions")
    datasets = ("mlm",)

    def parser(self, program):
        parser = super().parser(program)
        add = parser.add_argument
        add("--optimizer", choices=OPTIMIZERS, default=OPTIMIZERS[0], help="in place of the recipe's")
        add("--predictions", choices=PREDICTIONS, default=PREDICTIONS[0], help="tokens that reach the head")
        return parser

    def settle(self, opt, world_size):
        """Also set the `optimizer`, how many tokens are `masked`, and whether sequences are `padded`.

        Synthetic sequences have their full length: attention then needs no mask, which the fastest kernels
        do not take. It holds for a whole run, so that all steps run the same kernels.
        """
        super().settle(opt, world_size)
        if opt.recipe is not None:
            if opt.optimizer != OPTIMIZERS[0]:
                opt.recipe = dataclasses.replace(opt.recipe, optimizer=opt.optimizer)
            opt.optimizer = opt.recipe.optimizer
        opt.masked = predictions(opt.length)
        opt.padded = opt.stored or bool(opt.conform)
        return opt

    def predicted(self, opt):
        return opt.length if opt.predictions == "all" else predictions(opt.length)

    def evaluation(self, totals, samples):
        """Return facts and metrics; `totals` are those of `Training.evaluate`:

        the sum of the masked tokens' losses, masked tokens, those predicted right, next sentences predicted
        right, sequences.
        """
        loss, masked, right, sentences_right, sequences = totals
        metrics = {
            "loss": loss / masked,
            "masked_accuracy": right / masked,
            "sentence_accuracy": sentences_right / sequences,
        }
        return {"sequences": round(sequences), "masked_tokens": round(masked)}, metrics


SPEC = BertSpec("bert", "BERT", SIZES, shapes, recipe="nvidia-lamb", length=128)
