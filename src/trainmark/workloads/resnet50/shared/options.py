"""The one command line of all ResNet-50 workloads, and how the harness asks what a machine can do.

Runs inside every framework's interpreter: standard library only, Python 3.7+.
"""

import argparse
import os
import resource

from trainmark.workloads.resnet50.shared import feed, recipe
from trainmark.workloads.resnet50.shared.refusal import Refusal

REFUSED = 3  # exit code of a workload that cannot do what was asked on this device


def parse(arguments, program):
    parser = argparse.ArgumentParser(prog=program, description="Train ResNet-50 v1.5.")
    add = parser.add_argument
    add("--batch", type=int, default=32, help="images per device and step")
    add("--precision", choices=["fp32", "tf32", "amp", "bf16"], default="fp32")
    add("--loss-scale", type=loss_scale, default="dynamic", help="'dynamic' or a number; for --precision amp")
    add("--layout", choices=["NCHW", "NHWC"], default="NCHW")
    add("--engine", choices=["stock", "fused"], default="stock", help="whose kernels train")
    modes = ["default", "reduce-overhead"]
    add("--compile", nargs="?", const=modes[0], choices=modes, help="the framework's compiler")
    add("--cuda-graph", action="store_true", help="capture the whole step and replay it")
    add("--data", choices=["synthetic", "synthetic-host", "images"], default="synthetic")
    add("--dataset", metavar="FOLDER", help="where the images are, for --data images")
    add("--loader", choices=["host", "own", "dali-cpu", "dali-gpu"], default="host")
    add("--on-bad", choices=["stop", "skip"], default="stop", help="when an image cannot be read")
    add("--workers", type=int, default=0, help="threads of the loader; 0: as many as this rank has cores")
    add("--device", choices=["cuda", "cpu"], default="cpu")
    add("--image-size", type=int, default=224)
    add("--steps", type=int, default=120, help="steps to run, warm-up included")
    add(
        "--recipe",
        dest="recipe_name",
        default="ngc-90",
        help="one of {}, or a path".format(", ".join(recipe.names())),
    )
    add("--epochs", type=int, help="train by epochs, with an evaluation after each, and this many at most")
    add("--until", type=finish_line, action="append", metavar="top1=0.761", help="stop when this is reached")
    add("--checkpoints", metavar="FOLDER", help="keep what a killed training can go on from")
    add("--checkpoint-steps", type=int, default=0, metavar="N", help="also within an epoch, every N steps")
    add("--checkpoints-kept", type=int, default=2, metavar="N")
    add("--memory-cap", type=int, metavar="BYTES", help="use no more memory than this")
    add("--seed", type=int, default=0)
    add(
        "--training-images", type=int, default=recipe.TRAINING_IMAGES, help="images of an epoch, for the rate"
    )
    add("--conform", metavar="FILE", help="train from the weights of all frameworks, write what came of it")
    add("--check", action="store_true", help="read command lines on standard input, say which can run here")
    options = parser.parse_args(arguments)
    options.until = dict(options.until or ())
    options.rank = int(os.environ.get("RANK", "0"))
    options.local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    return settled(options, int(os.environ.get("WORLD_SIZE", "1")))


def settled(options, world_size):
    """With what follows from the number of ranks: the global batch, and the recipe at it."""
    options.world_size = world_size
    options.global_batch = options.batch * world_size
    options.by_epochs = bool(options.epochs or options.until)
    options.recipe, options.unfit = None, None
    try:
        found = recipe.find(options.recipe_name, options.global_batch)
        options.recipe = found.over(options.epochs) if options.epochs else found
    except recipe.RecipeError as error:
        options.unfit = str(error)
    return options


def departures(options):
    """What this training does otherwise than its recipe, each in a few words."""
    whole = recipe.find(options.recipe_name, options.global_batch)
    scale = options.loss_scale if options.precision == "amp" else None
    return whole.departures(options.recipe.epochs, options.batch, options.global_batch, scale)


def finish_line(text):
    """`top1=0.761` as ("top1", 0.761)."""
    name, _, share = text.partition("=")
    if name not in ("top1", "top5") or not 0 < float(share) <= 1:
        raise ValueError(text)
    return name, float(share)


def loss_scale(text):
    """`dynamic`, or the static scale as a number above zero."""
    if text == "dynamic":
        return text
    scale = float(text)
    if not 0 < scale < float("inf"):
        raise ValueError(text)
    return scale


def check_asked(options, framework):
    """Refuses what can be had on no device."""
    if options.unfit:
        raise Refusal(options.unfit)
    if options.engine == "fused" and framework != "pytorch":
        raise Refusal("the fused engine works on PyTorch's tensors; use framework: pytorch.")
    if options.compile == "reduce-overhead" and framework != "pytorch":
        raise Refusal("reduce-overhead is a mode of PyTorch's compiler; use compile: true.")
    if options.by_epochs and options.data != "images":
        raise Refusal("epochs and finish lines are for images; use data: images and a dataset.")
    if options.data == "images":
        feed.check(options)


def check_hardware(options, capability):
    """Refuses what the device can do in no framework; `capability` is NVIDIA's, None for a CPU."""
    on_cpu = capability is None
    ampere = not on_cpu and capability >= (8, 0)
    if options.precision == "tf32" and not ampere:
        raise Refusal("tf32 needs an NVIDIA GPU of compute capability 8.0 or later; use fp32.")
    if options.precision == "bf16" and not on_cpu and not ampere:
        raise Refusal("bf16 needs compute capability 8.0 or later on NVIDIA; use amp.")
    if options.cuda_graph and on_cpu:
        raise Refusal("a CUDA graph needs a CUDA device; leave cuda_graph out.")


def bytes_per_image(options):
    """The fewest that a step moves, in the kind of number that its activations are."""
    return recipe.bytes_per_image(options.image_size, 2 if options.precision in ("amp", "bf16") else 4)


def process_memory_peak():
    """Bytes that this process has held at most: what a step on the CPU reports as its memory."""
    try:
        with open("/proc/self/status", "rb") as file:
            return int(file.read().partition(b"VmHWM:")[2].split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        # Where there is no such file: this one also remembers the process that started us.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
