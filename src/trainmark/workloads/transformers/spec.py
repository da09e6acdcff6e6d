"""A decoder that predicts the next token, as the common loop sees it, whatever the framework."""

import math

from trainmark.workloads.common.spec import TrainingSpec
from trainmark.workloads.transformers import conventions, flops, options

METRICS = {
    "loss": {"better": "lower", "title": "loss"},  # nats per token
    "perplexity": {"better": "lower", "title": "perplexity"},
}
AXES = ("size", "length", "accumulate", "sharding", "recompute")


class DecoderSpec(TrainingSpec):
    """One family of decoders: `model` is its module with SIZES and `shapes`, `recipes` its recipes."""

    unit, metrics, axes = "tokens", METRICS, AXES

    def __init__(self, name, title, model, recipes, length):
        self.name, self.title, self.model, self.recipes, self.length = name, title, model, recipes, length
        self.package = "trainmark.workloads." + name

    def parse(self, arguments, program):
        from trainmark.workloads.common.options import parse

        sizes = self.model.SIZES
        parser = options.parser(program, self.title, self.recipes, sizes, METRICS, self.length)
        opt = parse(parser, arguments, self.recipes)
        return self.settle(opt, opt.world_size)

    def settle(self, opt, world_size):
        options.settle(opt, world_size, self.recipes, self.model.SIZES[opt.size])
        opt.step_samples = opt.step_sequences * opt.length
        if opt.conform:
            from trainmark.workloads.transformers.conformance.initial import conformance_recipe

            opt.recipe = conformance_recipe(opt.recipe, self.name)
        return opt

    check = staticmethod(options.check)

    def feed(self, opt):
        if opt.data != "tokens":
            return None
        from trainmark.workloads.tokens.feed import Feed

        return Feed(opt)

    def flops_per_sample(self, opt):
        return flops.decoder_flops(opt.shape, opt.length)

    def hardware_flops_per_sample(self, opt):
        return flops.decoder_hardware_flops(opt.shape, opt.length, opt.recompute)

    def flops_by_convention(self, opt):
        return conventions.decoder_conventions(opt.shape, opt.length, self.shapes(opt))

    def bytes_per_sample(self, opt):
        """The fewest that a step moves, in the kind of number that its activations are."""
        element = 2 if opt.precision in ("amp", "bf16") else 4
        shards = opt.world_size if opt.sharding == "fsdp" else 1
        parameters = flops.parameters(self.shapes(opt))
        return flops.decoder_bytes(opt.shape, parameters, element, opt.step_samples, opt.accumulate, shards)

    def evaluation(self, totals, samples):
        """Return the facts and metrics of an evaluation, from the sum of losses and the labels counted."""
        loss = totals[0] / totals[1]
        return {"tokens": round(totals[1])}, {"loss": loss, "perplexity": math.exp(min(loss, 700.0))}

    def shapes(self, opt):
        return self.model.shapes(opt.shape)

    def is_statistic(self, name):
        return False

    def observe(self, opt, training):
        from trainmark.workloads.transformers.conformance import initial, observe

        return observe.observe(opt, training, self.shapes(opt), initial.decoder_batches)
