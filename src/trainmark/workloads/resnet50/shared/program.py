"""ResNet-50 v1.5 as the common loop sees it, whatever the framework: its command line, and what is refused.

What each framework cannot do is a row of `refusals.json`; see `common/refusal.py` for its form.
"""

import functools
import os

from trainmark.workloads.common import loop, options, refusal
from trainmark.workloads.common.spec import TrainingSpec
from trainmark.workloads.resnet50.shared import data, recipe, tensors
from trainmark.workloads.resnet50.shared.recipe import METRICS, evaluation


def parse_options(arguments, program):
    parser = options.parser(
        *(program, "ResNet-50 v1.5", "images", recipe.RECIPES),
        datasets=["images"],
        loaders=["host", "own", "dali-cpu", "dali-gpu"],
        layouts=["NCHW", "NHWC"],
        engines=["stock", "fused"],
    )
    add = parser.add_argument
    add("--image-size", type=int, default=224)
    add("--on-bad", choices=["stop", "skip"], default="stop", help="when an image cannot be read")
    until = options.finish_line_of(METRICS, most=1)
    add("--until", type=until, action="append", metavar="top1=0.761", help="stop when this is reached")
    usual = recipe.TRAINING_IMAGES
    add("--training-images", dest="epoch_samples", type=int, default=usual, help="of an epoch, for the rate")
    return options.parse(parser, arguments, recipe.RECIPES)


def settle_options(opt, world_size):
    return options.settle(opt, world_size, recipe.RECIPES)


def check_options(opt):
    """Refuse what can be had in no framework."""
    options.check(opt)
    if opt.data == "images":
        data.check_dataset(opt)


class ResNet50Spec(TrainingSpec):
    name, unit, package = "resnet50", "images", "trainmark.workloads.resnet50"
    metrics, axes = METRICS, ("image_size",)
    evaluation = staticmethod(evaluation)
    parse, settle, check = map(staticmethod, (parse_options, settle_options, check_options))
    is_statistic = staticmethod(tensors.is_statistic)
    refusals = refusal.read_table(os.path.join(os.path.dirname(os.path.abspath(__file__)), "refusals.json"))

    def shapes(self, opt):
        return tensors.shapes()

    def feed(self, opt):
        return data.ImageFeed(opt) if opt.data == "images" else None

    def flops_per_sample(self, opt):
        return recipe.flops_per_image(opt.image_size)

    def bytes_per_sample(self, opt):
        """The fewest that a step moves, in the kind of number that its activations are."""
        return recipe.bytes_per_image(opt.image_size, options.element_bytes(opt))

    def observe(self, opt, training):
        return tensors.observe(opt, training)


SPEC = ResNet50Spec()
main = functools.partial(loop.run_program, SPEC)
