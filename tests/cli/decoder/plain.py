"""Sleeps in place of training, with the memory of a sequence known and the positions limited."""

import argparse
import json
import sys
import time

from trainmark import probe
from trainmark.workloads.gpt2.shared import SIZES, shapes
from trainmark.workloads.transformers import flops

SHAPE, POSITIONS, BYTES_A_TOKEN = SIZES["mini"], 320, 1 << 20
TENSORS = shapes(SHAPE)

parser = argparse.ArgumentParser()
for name in ("batch", "steps", "length", "accumulate", "memory-cap"):
    parser.add_argument("--" + name, type=int, default=1)
for name in ("device", "precision", "data", "recompute"):
    parser.add_argument("--" + name)
parser.add_argument("--check", action="store_true")


def refusal(asked):
    if asked.length > POSITIONS:
        return f"a sequence of {asked.length} is longer than the {POSITIONS} positions."
    return None


asked = parser.parse_args()
if asked.check:
    print(json.dumps({"framework_version": "1.0", "device_name": "cpu"}))
    for line in sys.stdin:
        print(json.dumps(refusal(parser.parse_args(json.loads(line)["arguments"]))))
    sys.exit()
if refusal(asked):
    print("refused: " + refusal(asked), file=sys.stderr)
    sys.exit(3)
memory = asked.batch * asked.length * BYTES_A_TOKEN
if memory > asked.memory_cap > 1:
    sys.exit("out of memory")
tokens = asked.batch * asked.accumulate * asked.length
run = probe.start(
    unit="tokens",
    framework="plain",
    workload="decoder",
    device_name="cpu",
    flops_per_sample=flops.sample_flops(SHAPE, asked.length),
    hardware_flops_per_sample=flops.hardware_flops(SHAPE, asked.length, asked.recompute or "none"),
    flops_by_convention=flops.conventions(SHAPE, asked.length, TENSORS),
    bytes_per_sample=flops.sample_bytes(SHAPE, flops.parameter_count(TENSORS), 4, tokens, asked.accumulate),
)
for _ in range(asked.steps):
    time.sleep(0.004)
    run.step(tokens, loss=1.0, memory=memory)
run.end(peak_flops=1e13, peak_bandwidth=1e12)
