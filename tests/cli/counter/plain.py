"""Counts rows: as little as a program of a workload family can be."""

import argparse
import json
import os
import sys
import time
from pathlib import Path

from trainmark import probe

parser = argparse.ArgumentParser()
for name in ("batch", "steps", "width"):
    parser.add_argument(f"--{name}", type=int, default=8)
for name in ("device", "precision", "data", "kind", "conform", "memory-cap"):
    parser.add_argument(f"--{name}")
parser.add_argument("--check", action="store_true")
asked = parser.parse_args()
if asked.check:
    print(json.dumps({"framework_version": "1.0", "device_name": "cpu"}))
    for line in sys.stdin:
        question = parser.parse_args(json.loads(line)["arguments"])
        print(json.dumps("no tf32 here." if question.precision == "tf32" else None))
    sys.exit()
run = probe.start(unit="rows", framework="plain", workload="counter", flops_per_sample=2.0 * asked.width)
for _ in range(asked.steps):
    time.sleep(0.005)
    run.step(asked.batch, loss=1.0, memory=1000 * asked.batch)
run.end()
if asked.conform:
    Path(asked.conform.replace("{rank}", os.environ["RANK"])).write_text(json.dumps({"sum": asked.steps}))
