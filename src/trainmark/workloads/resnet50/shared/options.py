"""The one command line of all ResNet-50 workloads, and how the harness asks what a machine can do.

Runs inside every framework's interpreter: standard library only, Python 3.7+.
"""

import argparse
import os
import resource

from trainmark.workloads.resnet50.shared import recipe

REFUSED = 3  # exit code of a workload that cannot do what was asked on this device


class Refusal(Exception):  # noqa: N818 - it is an answer, not a fault
    """What was asked cannot be had here; the message is one sentence that says why and what to use."""


def parse(arguments, program):
    parser = argparse.ArgumentParser(prog=program, description="Train ResNet-50 v1.5 on synthetic images.")
    add = parser.add_argument
    add("--batch", type=int, default=32, help="images per device and step")
    add("--precision", choices=["fp32", "tf32", "amp", "bf16"], default="fp32")
    add("--loss-scale", type=loss_scale, default="dynamic", help="'dynamic' or a number; for --precision amp")
    add("--layout", choices=["NCHW", "NHWC"], default="NCHW")
    add("--compile", action="store_true", help="the framework's compiler")
    add("--cuda-graph", action="store_true", help="capture the whole step and replay it")
    add("--data", choices=["synthetic", "synthetic-host"], default="synthetic")
    add("--device", choices=["cuda", "cpu"], default="cpu")
    add("--image-size", type=int, default=224)
    add("--steps", type=int, default=120, help="steps to run, warm-up included")
    add("--seed", type=int, default=0)
    add(
        "--training-images", type=int, default=recipe.TRAINING_IMAGES, help="images of an epoch, for the rate"
    )
    add("--conform", metavar="FILE", help="train from the weights of all frameworks, write what came of it")
    add("--check", action="store_true", help="read command lines on standard input, say which can run here")
    options = parser.parse_args(arguments)
    options.rank = int(os.environ.get("RANK", "0"))
    options.local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    options.world_size = int(os.environ.get("WORLD_SIZE", "1"))
    options.global_batch = options.batch * options.world_size
    return options


def loss_scale(text):
    """`dynamic`, or the static scale as a number above zero."""
    if text == "dynamic":
        return text
    scale = float(text)
    if not 0 < scale < float("inf"):
        raise ValueError(text)
    return scale


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


def process_memory_peak():
    """Bytes that this process has held at most: what a step on the CPU reports as its memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
