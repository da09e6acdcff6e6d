"""A transformer's training as the common loop sees it, whatever the framework."""

import math

from trainmark.workloads.common.spec import TrainingSpec
from trainmark.workloads.transformers import conventions, flops, options

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
        return options.parser(
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
        options.settle(opt, world_size, self.recipes, self.model.SIZES[opt.size], self.datasets)
        opt.step_samples = opt.step_sequences * self.samples_per_sequence(opt)
        if opt.conform:
            from trainmark.workloads.transformers.conformance.initial import conformance_recipe

            opt.recipe = conformance_recipe(opt.recipe, self.name)
        return opt

    check = staticmethod(options.check)

    def feed(self, opt):
        if not opt.stored:
            return None
        from trainmark.workloads.tokens.feed import Feed

        return Feed(opt)

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
        from trainmark.workloads.transformers.conformance import initial, observe

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
        return conventions.decoder_conventions(opt.shape, opt.length, self.shapes(opt))

    def bytes_per_sample(self, opt):
        parameters = flops.parameters(self.shapes(opt))
        return flops.decoder_bytes(
            opt.shape, parameters, element_bytes(opt), opt.step_samples, opt.accumulate, shards(opt)
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


def shards(opt):
    """Return over how many ranks the optimizer's state is spread."""
    return opt.world_size if opt.sharding == "fsdp" else 1
