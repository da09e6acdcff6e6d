"""A trainer that needs so much memory an image and has so much: as quick as a search of it should be.

It speaks as the workloads do: answers `--check`, writes events, ends in the words of a MemoryError.
"""

import json
import os
import sys
import time
from itertools import pairwise
from pathlib import Path

from trainmark import probe

FIXED, PER_IMAGE = 400 << 20, 10 << 20
SPENT = 7


def main(arguments):
    if "--check" in arguments:
        print(json.dumps({"framework_version": "1.2"}), flush=True)
        for line in sys.stdin:
            refused = "bf16" in json.loads(line)["arguments"]
            print(json.dumps("bf16 needs another device; use fp32." if refused else None), flush=True)
        return 0
    given = dict(pairwise(arguments))
    batch, cap = int(given["--batch"]), int(given["--memory-cap"])
    with Path(os.environ["TRIED"]).open("a") as tried:
        tried.write(f"{batch}\n")
    time.sleep(float(os.environ.get("EACH_TAKES", "0")))
    if batch == int(os.environ.get("BREAKS_AT", "0")):
        print("ValueError: something else is wrong")
        return SPENT
    memory = FIXED + PER_IMAGE * batch
    if memory > cap:
        print(f"MemoryError: {memory} bytes were in use, more than the memory cap of {cap}")
        return 1
    run = probe.start(unit="images")
    for _ in range(int(given["--steps"])):
        run.step(batch, memory=memory)
    run.end()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
