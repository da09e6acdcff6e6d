"""Time the loader of token files: `python -m trainmark.workloads.tokens.bench` prints JSON."""

import argparse
import json
import sys
import time

from trainmark.workloads.tokens import dataset
from trainmark.workloads.tokens.loader import Loader, sequences_in
from trainmark.workloads.tokens.unfit import Unfit

UNFIT = 3  # exit code: these files cannot be read so; standard output says why
WARM_BATCHES, WARM_SECONDS = 4, 0.2


def main():
    parser = argparse.ArgumentParser(prog="bench")
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    try:
        result = measure(options)
    except Unfit as error:
        print(json.dumps({"unfit": str(error)}))
        return UNFIT
    print(json.dumps(result))
    return 0


def measure(options):
    """Batches for `--seconds` after a warm-up, over as many passes as that takes."""
    split = dataset.open_split(options.dataset, "train")
    length = getattr(split, "length", options.length)
    if sequences_in(split, length) < options.batch:
        raise Unfit(
            "{} has {} training sequences of {} tokens, fewer than a batch of {}.".format(
                options.dataset, sequences_in(split, length), length, options.batch
            )
        )
    loader = Loader(split, length, options.batch, options.batch, vocabulary=1 << 31)
    batches = loader.training(0)
    began = time.perf_counter()
    for count, _ in enumerate(batches, 1):
        if count >= WARM_BATCHES and time.perf_counter() - began >= WARM_SECONDS:
            break
    cpu, wall, sequences = time.process_time(), time.perf_counter(), 0
    for _ in batches:
        sequences += options.batch
        seconds = time.perf_counter() - wall
        if seconds >= options.seconds:
            break
    result = {"sequences": sequences, "tokens": sequences * length, "length": length, "format": split.format}
    result.update(seconds=seconds, cpu_seconds=time.process_time() - cpu)
    loader.close()
    return result


if __name__ == "__main__":
    sys.exit(main())
