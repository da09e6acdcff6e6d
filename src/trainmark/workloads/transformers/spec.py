"""A transformer's training as the common loop sees it: options, recipes, refusals, costs.

Recipes train by AdamW (Loshchilov & Hutter 2019) or LAMB (You et al. 2020), with clipping. What each
framework cannot do is a row of `refusals.json`; see `common/refusal.py` for its form.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from trainmark.workloads.common import options, recipe, refusal
from trainmark.workloads.common.refusal import Refusal
from trainmark.workloads.common.spec import TrainingSpec
from trainmark.workloads.transformers import flops

ENGINES = ["stock", "plain"]
SHARDING = ["none", "fsdp"]
RECOMPUTE = ["none", "blocks"]


def option_parser(program, title, recipes, sizes, metrics, length, datasets=("tokens",)):
    """Return the parser; of the sizes the first is the default."""
    made = options.parser(program, title, "sequences", recipes, datasets=list(datasets), engines=ENGINES)
    add = made.add_argument
    add("--size", choices=list(sizes), default=next(iter(sizes)))
    add("--length", type=int, default=length, help="tokens in a sequence")
    add("--accumulate", type=int, default=1, metavar="N", help="micro-batches a step")
    add("--sharding", choices=SHARDING, default="none", help="of weights and optimizer over the ranks")
    add("--recompute", choices=RECOMPUTE, default="none", help="activations that backward computes again")
    add("--on-bad", choices=["stop", "skip"], default="stop", help="taken from suites; token files are whole")
    add("--until", type=finish_line(metrics), action="append", metavar="loss=3.28", help="stop when reached")
    return made


def finish_line(metrics):
    """Return a parser of `loss=3.28` into ("loss", 3.28)."""

    def parse(text):
        name, _, value = text.partition("=")
        if name not in metrics or not 0 < float(value) < float("inf"):
            raise ValueError(text)
        return name, float(value)

    return parse


def settle_options(opt, world_size, recipes, shape, datasets):
    """Set what follows from the number of ranks, from the size and from the kind of data."""
    options.settle(opt, world_size, recipes)
    opt.shape = shape
    opt.stored, opt.dataset_kind = opt.data in datasets, datasets[0]
    opt.step_sequences = opt.batch * opt.accumulate
    if opt.recipe is not None:
        tokens = opt.recipe.epoch_tokens or opt.recipe.rate_batch * opt.length
        # In sequences, as the global batch is; at least one step.
        opt.epoch_samples = max(opt.global_batch, tokens // opt.length)
    return opt


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


def is_decayed(dimensions):
    """Whether a tensor of these dimensions has weight decay: matrices have, norms and biases have not."""
    return len(dimensions) > 1


def clip_factor(norm, clip):
    """Return what a gradient of this global norm is multiplied with, before it is capped at 1."""
    return clip / (norm + 1e-6)


REFUSALS = refusal.read_table(os.path.join(os.path.dirname(os.path.abspath(__file__)), "refusals.json"))


def refuse(framework, opt, capability=None, **machine):
    """Refuse what cannot be had here; `capability` is that of the GPU, None where none is used."""
    asked = dict(vars(opt.recipe), **vars(opt))
    asked.update(
        machine, framework=framework, title=refusal.TITLES[framework], several_ranks=opt.world_size > 1
    )
    refusal.check(REFUSALS, capability=capability, **asked)


METRICS = {
    "loss": {"better": "lower", "title": "validation loss"},  # nats per token
    "perplexity": {"better": "lower", "title": "perplexity"},
}
AXES = ("size", "length", "accumulate", "sharding", "recompute")


class TransformerSpec(TrainingSpec):
    """One family: `model` is its module with SIZES and `shapes`, `recipes` its recipes.

    Costs are asked of options, or of anything that has the axes and the `shape`. Each kind of family adds

    samples_per_sequence(options)     in the unit of the family
    flops_per_sample, hardware_flops_per_sample, flops_by_convention, bytes_per_sample
    layers(options)                   parameters and multiply-adds from input to output
    evaluation(totals, samples)       facts and metrics
    conformance_batches               what makes a rank's batches, by the name of a function of `initial`
    """

    axes, datasets = AXES, ("tokens",)

    def __init__(self, name, title, model, recipes, length):
        self.name, self.title, self.model, self.recipes, self.length = name, title, model, recipes, length
        self.package = "trainmark.workloads." + name

    def parser(self, program):
        return option_parser(
            program, self.title, self.recipes, self.model.SIZES, self.metrics, self.length, self.datasets
        )

    def main(self, framework, training, check, facts):
        """Run the program of one framework; see `common/loop.py`."""
        from trainmark.workloads.common import loop  # imports numpy, which a declaration does without

        loop.main(self, framework, training, check, facts)

    def parse(self, arguments, program):
        from trainmark.workloads.common.options import parse

        opt = parse(self.parser(program), arguments, self.recipes)
        return self.settle(opt, opt.world_size)

    def settle(self, opt, world_size):
        settle_options(opt, world_size, self.recipes, self.model.SIZES[opt.size], self.datasets)
        opt.step_samples = opt.step_sequences * self.samples_per_sequence(opt)
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

    def flops_by_class(self, opt):
        """Return the FLOP computed for one sample by kernel class."""
        sequence = flops.attention_flops(opt.shape, opt.length, opt.recompute)
        attention = sequence / self.samples_per_sequence(opt)
        return {"attention": attention, "matrix product": self.hardware_flops_per_sample(opt) - attention}

    def shapes(self, opt):
        return self.model.shapes(opt.shape)

    def is_statistic(self, name):
        return False

    def observe(self, opt, training):
        from trainmark.workloads.transformers.conformance import observe
        from trainmark.workloads.transformers.conformance import observe as initial

        return observe.observe(opt, training, self.shapes(opt), getattr(initial, self.conformance_batches))


class DecoderSpec(TransformerSpec):
    """A decoder that predicts the next token."""

    unit, metrics, conformance_batches = "tokens", METRICS, "decoder_batches"

    def samples_per_sequence(self, opt):
        return opt.length

    def flops_per_sample(self, opt):
        return flops.decoder_flops(opt.shape, opt.length)

    def hardware_flops_per_sample(self, opt):
        return flops.decoder_hardware_flops(opt.shape, opt.length, opt.recompute)

    def flops_by_convention(self, opt):
        return flops.decoder_conventions(opt.shape, opt.length, self.shapes(opt))

    def bytes_per_sample(self, opt):
        parameters = flops.parameter_count(self.shapes(opt))
        return flops.decoder_bytes(
            opt.shape, parameters, element_bytes(opt), opt.step_samples, opt.accumulate, shard_count(opt)
        )

    def layers(self, opt):
        return flops.layers(opt.shape, opt.length, self.shapes(opt))

    def evaluation(self, totals, samples):
        """Return the facts and metrics of an evaluation, from the sum of losses and the labels counted."""
        loss = totals[0] / totals[1]
        return {"tokens": round(totals[1])}, {"loss": loss, "perplexity": math.exp(min(loss, 700.0))}


def element_bytes(opt):
    """Return the bytes of a number of the activations."""
    return 2 if opt.precision in ("amp", "bf16") else 4


def shard_count(opt):
    """Return over how many ranks the optimizer's state is spread."""
    return opt.world_size if opt.sharding == "fsdp" else 1
