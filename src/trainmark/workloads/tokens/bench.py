"""Time the loader of token files: `python -m trainmark.workloads.tokens.bench` prints JSON."""

import argparse
import json
import sys

from trainmark.workloads.common import loader_rate
from trainmark.workloads.tokens import dataset
from trainmark.workloads.tokens.formats.mapped import UnfitTokens
from trainmark.workloads.tokens.loader import TokenLoader, sequences_in

UNFIT = 3  # exit code: these files cannot be read so; standard output says why
WARM_SECONDS = 0.2


def main():
    parser = argparse.ArgumentParser(prog="bench")
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    try:
        result = measure(options)
    except UnfitTokens as error:
        print(json.dumps({"unfit": str(error)}))
        return UNFIT
    print(json.dumps(result))
    return 0


def measure(options):
    """Batches for `--seconds` after a warm-up, over as many passes as that takes."""
    split = dataset.open_split(options.dataset, "train")
    length = getattr(split, "length", options.length)
    if sequences_in(split, length) < options.batch:
        raise UnfitTokens(
            "{} has {} training sequences of {} tokens, fewer than a batch of {}.".format(
                options.dataset, sequences_in(split, length), length, options.batch
            )
        )
    loader = TokenLoader(split, length, options.batch, options.batch, vocabulary=1 << 31)
    count, seconds, cpu = loader_rate.timed(loader.training(0), options.seconds, WARM_SECONDS)
    loader.close()
    sequences = count * options.batch
    counts = {"sequences": sequences, "tokens": sequences * length, "length": length}
    return dict(counts, format=split.format, seconds=seconds, cpu_seconds=cpu)


if __name__ == "__main__":
    sys.exit(main())
