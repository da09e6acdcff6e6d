"""The one command line of all ResNet-50 programs."""

from trainmark.workloads.common import options
from trainmark.workloads.resnet50.shared import feed, recipe


def parse(arguments, program):
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
    add("--until", type=finish_line, action="append", metavar="top1=0.761", help="stop when this is reached")
    usual = recipe.TRAINING_IMAGES
    add("--training-images", dest="epoch_samples", type=int, default=usual, help="of an epoch, for the rate")
    return options.parse(parser, arguments, recipe.RECIPES)


def settle(opt, world_size):
    return options.settle(opt, world_size, recipe.RECIPES)


def finish_line(text):
    """`top1=0.761` as ("top1", 0.761)."""
    name, _, share = text.partition("=")
    if name not in ("top1", "top5") or not 0 < float(share) <= 1:
        raise ValueError(text)
    return name, float(share)


def check(opt):
    """Refuse what can be had in no framework."""
    options.check(opt)
    if opt.data == "images":
        feed.check(opt)
