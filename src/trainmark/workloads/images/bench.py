"""One loader, timed in a process of its own: `python -m trainmark.workloads.images.bench` prints JSON."""

import argparse
import importlib
import itertools
import json
import os
import sys

import numpy as np

from trainmark.workloads.common import loader_rate
from trainmark.workloads.images import dataset, host, jpeg, sampling

UNFIT = 3  # exit code: this loader cannot be had here; standard output says why
WARM_SECONDS = 1.0  # threads start, compilers compile, caches fill


def main():
    options = parse()
    try:
        loader = make(options)
        result = measure(loader, options)
    except (ImportError, dataset.UnfitImages, jpeg.CodecMissing) as error:
        print(json.dumps({"unfit": str(error)}))
        return UNFIT
    print(json.dumps(result))
    return 0


def parse():
    parser = argparse.ArgumentParser(prog="bench")
    add = parser.add_argument
    add(
        "--loader",
        required=True,
        help="host, host-float, or the name of a file of own/ (dali: dali-cpu, dali-gpu)",
    )
    add("--codec", help="of the host loader: native, simplejpeg, pillow")
    add("--dataset", required=True)
    add("--batch", type=int, default=64)
    add("--image-size", type=int, default=224)
    add("--workers", type=int, default=1)
    add("--seconds", type=float, default=5.0)
    add("--seed", type=int, default=0)
    add("--layout", choices=["NCHW", "NHWC"], default="NCHW")
    add("--device", choices=["cpu", "cuda"], default="cpu")
    options = parser.parse_args()
    options.rank = options.local_rank = 0
    options.world_size = 1
    return options


def make(options):
    if options.loader.startswith("host"):
        return HostBench(options)
    return importlib.import_module(f"trainmark.workloads.images.own.{options.loader.split('-')[0]}").Images(
        options
    )


class HostBench:
    """The host loader as the others are: with `-float`, normalised on the processor like theirs."""

    def __init__(self, options):
        split = dataset.open_split(options.dataset, "train")
        self._loader = host.HostLoader(
            split,
            options.batch,
            options.image_size,
            workers=options.workers,
            seed=options.seed,
            codec=options.codec,
        )
        self._float = options.loader == "host-float"

    def training(self, epoch):
        for pixels, labels in self._loader.training(epoch):
            yield self._normalised(pixels) if self._float else pixels, labels

    def _normalised(self, pixels):
        out = np.empty((len(pixels), 3, *pixels.shape[1:3]), np.float32)
        for colour, (mean, deviation) in enumerate(zip(sampling.MEAN, sampling.DEVIATION)):
            plane = out[:, colour]
            np.subtract(pixels[..., colour], np.float32(mean), out=plane)
            plane *= np.float32(1 / deviation)
        return out


def measure(loader, options):
    """Batches for `--seconds` after a warm-up, over as many epochs as that takes."""
    batches = (
        batch for epoch in itertools.count() for batch in at_least_one_batch(loader.training(epoch), options)
    )
    count, seconds, cpu = loader_rate.timed(
        batches, options.seconds, WARM_SECONDS, loader_rate.process_tree_cpu_seconds
    )
    return {"images": count * options.batch, "seconds": seconds, "cpu_seconds": cpu}


def wait_until_computed(images):
    """Two frameworks give out what is still to be computed."""
    if hasattr(images, "wait_to_read"):
        images.wait_to_read()
    elif type(images).__module__.startswith("oneflow"):
        images[-1:, :1, :1, :1].numpy()


def at_least_one_batch(batches, options):
    """An epoch without a batch would be asked for again and again."""
    count = 0
    for count, (images, labels) in enumerate(batches, 1):  # noqa: B007
        wait_until_computed(images)
        yield images, labels
    if not count:
        raise dataset.UnfitImages(
            f"{options.dataset} has fewer training images than one batch of {options.batch}."
        )


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # a loader left in the middle of an epoch may wait for its own threads for ever
