"""ResNet-50 v1.5 as the common loop sees it, whatever the framework."""

import functools

from trainmark.workloads.common import loop
from trainmark.workloads.common.spec import TrainingSpec
from trainmark.workloads.resnet50.shared import feed, options, recipe, tensors
from trainmark.workloads.resnet50.shared.metrics import METRICS, evaluation


class ResNet50Spec(TrainingSpec):
    name, unit, package = "resnet50", "images", "trainmark.workloads.resnet50"
    metrics, axes = METRICS, ("image_size",)
    evaluation = staticmethod(evaluation)
    parse, settle, check = map(staticmethod, (options.parse, options.settle, options.check))
    is_statistic = staticmethod(tensors.is_statistic)

    def shapes(self, opt):
        return tensors.shapes()

    def feed(self, opt):
        return feed.Feed(opt) if opt.data == "images" else None

    def flops_per_sample(self, opt):
        return recipe.flops_per_image(opt.image_size)

    def bytes_per_sample(self, opt):
        """The fewest that a step moves, in the kind of number that its activations are."""
        return recipe.bytes_per_image(opt.image_size, 2 if opt.precision in ("amp", "bf16") else 4)

    def observe(self, opt, training):
        from trainmark.workloads.resnet50.shared import conformance

        return conformance.observe(opt, training)


SPEC = ResNet50Spec()
main = functools.partial(loop.main, SPEC)
