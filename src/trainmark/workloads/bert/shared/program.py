"""BERT's pre-training as the common loop sees it, whatever the framework."""

import dataclasses
import os

from trainmark.workloads.bert.shared import model
from trainmark.workloads.common.recipe import Recipes
from trainmark.workloads.transformers import flops, spec
from trainmark.workloads.transformers.spec import TransformerRecipe

METRICS = {
    "loss": {"better": "lower", "title": "validation loss"},  # of the masked tokens, in nats
    "masked_accuracy": {"better": "higher", "title": "masked accuracy", "share": True},
    "sentence_accuracy": {"better": "higher", "title": "next-sentence accuracy", "share": True},
}
OPTIMIZERS = ("recipe", "lamb", "adamw")
PREDICTIONS = ("masked", "all")


class BertSpec(spec.TransformerSpec):
    """Masked tokens and the next sentence; a sample is a sequence, whatever its length."""

    unit, metrics, conformance_batches = "sequences", METRICS, "bert_batches"
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
        opt.masked = model.predictions(opt.length)
        opt.padded = opt.stored or bool(opt.conform)
        return opt

    def samples_per_sequence(self, opt):
        return 1

    def flops_per_sample(self, opt):
        return flops.bert_flops(opt.shape, opt.length, predicted(opt))

    def hardware_flops_per_sample(self, opt):
        return flops.bert_hardware_flops(opt.shape, opt.length, predicted(opt), opt.recompute)

    def flops_by_convention(self, opt):
        return flops.bert_conventions(opt.shape, opt.length, self.shapes(opt))

    def bytes_per_sample(self, opt):
        parameters, element = flops.parameter_count(self.shapes(opt)), spec.element_bytes(opt)
        batch = opt.step_samples, opt.accumulate, spec.shard_count(opt)
        return flops.bert_bytes(opt.shape, opt.length, predicted(opt), parameters, element, *batch)

    def layers(self, opt):
        return flops.layers(opt.shape, opt.length, self.shapes(opt), predicted(opt))

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


def predicted(opt):
    """Return how many tokens of a sequence reach the MLM head."""
    return opt.length if opt.predictions == "all" else model.predictions(opt.length)


FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "recipes")
RECIPES = Recipes(FOLDER, TransformerRecipe, default="nvidia-lamb")
SPEC = BertSpec("bert", "BERT", model, RECIPES, length=128)
main = SPEC.main
