"""A transformer's training as the common loop sees it: options, recipes, refusals, costs.

Recipes train by AdamW (Loshchilov & Hutter 2019) or LAMB (You et al. 2020), with clipping. What each
framework cannot do is a row of `refusals.json`; see `common/refusal.py` for its form.
"""

from __future__ import annotations

import functools
import math
import os
from dataclasses import dataclass

from trainmark.workloads.common import options, recipe, refusal
from trainmark.workloads.common.recipe import Recipes
from trainmark.workloads.common.refusal import Refusal
from trainmark.workloads.common.spec import TrainingSpec
from trainmark.workloads.transformers import flops

ENGINES = ("stock", "plain")
SHARDING = ("none", "fsdp")


def check_options(opt):
    """Refuse what can be had in no framework."""
    options.check(opt)
    for name in ("batch", "accumulate", "length"):
        if getattr(opt, name) < 1:
            raise Refusal("--{} takes a whole number from 1 up, not {}.".format(name, getattr(opt, name)))
    if opt.length > opt.shape.positions:
        raise Refusal(
            "{} has {:,} positions, too few for sequences of {:,} tokens; use a shorter length.".format(
                opt.size, opt.shape.positions, opt.length
            )
        )
    if opt.stored:
        from trainmark.workloads.tokens import feed

        feed.check_dataset(opt)


@dataclass(frozen=True)
class TransformerRecipe(recipe.Recipe):
    """Weight decay is on matrices only. Gradients are clipped to the global norm `clip`.

    An epoch, after which there is an evaluation, is a pass over `epoch_tokens` of the corpus; over all of it
    where it has fewer, or none are given.
    """

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    clip: float = 1.0
    epoch_tokens: int | None = None


def linear(name, inputs, outputs):
    """Return the tensors of a linear layer, whose weight is (outputs, inputs)."""
    return {name + ".weight": (outputs, inputs), name + ".bias": (outputs,)}


def norm(name, width):
    return {name + ".scale": (width,), name + ".bias": (width,)}


def in_blocks(layers, block):
    """Return the tensors of so many blocks that are alike."""
    numbered = ((index, name) for index in range(layers) for name in block)
    return {"blocks.{}.{}".format(index, name): block[name] for index, name in numbered}


def is_decayed(dimensions):
    """Whether a tensor of these dimensions has weight decay: matrices have, norms and biases have not."""
    return len(dimensions) > 1


def clip_factor(norm, clip):
    """Return what a gradient of this global norm is multiplied with, before it is capped at 1."""
    return clip / (norm + 1e-6)


METRICS = {
    "loss": {"better": "lower", "title": "validation loss"},  # nats per token
    "perplexity": {"better": "lower", "title": "perplexity"},
}
AXES = ("size", "length", "accumulate", "sharding", "recompute")
FOLDER = os.path.dirname(os.path.abspath(__file__))


class TransformerSpec(TrainingSpec):
    """One family: its `sizes` by name, the first the default, the `tensor_shapes` of a size, its `recipes`.

    Costs are asked of options, or of anything that has the axes and the `shape`. Each kind of family adds

    unit, short_unit, metrics         of a sample; of an evaluation
    evaluation(totals, samples)       facts and metrics
    predicted(options)                how many tokens of a sequence reach the head of BERT
    """

    axes, datasets = AXES, ("tokens",)
    refusals = refusal.read_table(os.path.join(FOLDER, "refusals.json"))

    def __init__(self, name, title, sizes, tensor_shapes, recipe, length):
        self.name, self.title, self.sizes, self.length = name, title, sizes, length
        self.tensor_shapes = tensor_shapes
        self.package = "trainmark.workloads." + name
        folder = os.path.join(os.path.dirname(FOLDER), name, "recipes")
        self.recipes = Recipes(folder, TransformerRecipe, default=recipe)

    def parser(self, program):
        made = options.parser(
            *(program, self.title, "sequences", self.recipes), datasets=self.datasets, engines=ENGINES
        )
        add = made.add_argument
        add("--size", choices=list(self.sizes), default=next(iter(self.sizes)))
        add("--length", type=int, default=self.length, help="tokens in a sequence")
        add("--accumulate", type=int, default=1, metavar="N", help="micro-batches a step")
        add("--sharding", choices=SHARDING, default="none", help="of weights and optimizer over the ranks")
        again = "activations that backward computes again"
        add("--recompute", choices=flops.RECOMPUTE, default="none", help=again)
        add("--on-bad", choices=["stop", "skip"], default="stop", help="from suites; token files are whole")
        until = options.finish_line_of(self.metrics)
        add("--until", type=until, action="append", metavar="loss=3.28", help="stop when reached")
        return made

    def main(self, dialect, build):
        """Run the program of one framework, whose module of `frameworks/` is the `dialect`.

        `build(options)` makes the family's model.
        """
        from trainmark.workloads.common import loop  # imports numpy, which a declaration does without

        loop.run_program(self, dialect.framework, functools.partial(dialect.Training, build=build))

    def parse(self, arguments, program):
        opt = options.parse(self.parser(program), arguments, self.recipes)
        return self.settle(opt, opt.world_size)

    def settle(self, opt, world_size):
        """Set what follows from the number of ranks, from the size and from the kind of data."""
        options.settle(opt, world_size, self.recipes)
        opt.shape = self.sizes[opt.size]
        opt.stored, opt.dataset_kind = opt.data in self.datasets, self.datasets[0]
        opt.step_sequences = opt.batch * opt.accumulate
        opt.step_samples = opt.step_sequences * self.samples_per_sequence(opt)
        if opt.recipe is not None:
            tokens = opt.recipe.epoch_tokens or opt.recipe.rate_batch * opt.length
            # In sequences, as the global batch is; at least one step.
            opt.epoch_samples = max(opt.global_batch, tokens // opt.length)
        if opt.conform:
            from trainmark.workloads.transformers.conformance.observe import conformance_recipe

            opt.recipe = conformance_recipe(opt.recipe, self.name)
        return opt

    check = staticmethod(check_options)

    def feed(self, opt):
        if not opt.stored:
            return None
        from trainmark.workloads.tokens.feed import TokenFeed

        return TokenFeed(opt)

    def predicted(self, opt):
        return None

    def samples_per_sequence(self, opt):
        return flops.samples_per_sequence(opt.shape, opt.length)

    def flops_per_sample(self, opt):
        return flops.sample_flops(opt.shape, opt.length, self.predicted(opt))

    def hardware_flops_per_sample(self, opt):
        return flops.hardware_flops(opt.shape, opt.length, opt.recompute, self.predicted(opt))

    def flops_by_convention(self, opt):
        return flops.conventions(opt.shape, opt.length, self.shapes(opt))

    def flops_by_class(self, opt):
        """Return the FLOP computed for one sample by kernel class."""
        sequence = flops.attention_flops(opt.shape, opt.length, opt.recompute)
        attention = sequence / self.samples_per_sequence(opt)
        return {"attention": attention, "matrix product": self.hardware_flops_per_sample(opt) - attention}

    def bytes_per_sample(self, opt):
        parameters = flops.parameter_count(self.shapes(opt))
        shards = opt.world_size if opt.sharding == "fsdp" else 1
        step = opt.step_samples, opt.accumulate, shards, self.predicted(opt)
        return flops.sample_bytes(opt.shape, opt.length, parameters, options.element_bytes(opt), *step)

    def layers(self, opt):
        """Yield parameters and multiply-adds from input to output."""
        return flops.layers(opt.shape, opt.length, self.shapes(opt), self.predicted(opt))

    def shapes(self, opt):
        return self.tensor_shapes(opt.shape)

    def is_statistic(self, name):
        return False

    def observe(self, opt, training):
        from trainmark.workloads.transformers.conformance import observe

        return observe.observe(opt, training, self.shapes(opt), observe.batches_of(opt.shape))


class DecoderSpec(TransformerSpec):
    """A decoder that predicts the next token."""

    unit, short_unit, metrics = "tokens", "tok", METRICS

    def evaluation(self, totals, samples):
        """Return the facts and metrics of an evaluation, from the sum of losses and the labels counted."""
        loss = totals[0] / totals[1]
        return {"tokens": round(totals[1])}, {"loss": loss, "perplexity": math.exp(min(loss, 700.0))}
