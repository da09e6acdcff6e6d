"""`python -m benchmarks [NAME …]` measures all or those named and prints a table; it keeps nothing."""

from __future__ import annotations

import importlib
import sys

from benchmarks.row import Row, table

MEASUREMENTS = {
    "probe": "what the probe adds to a step of 50 ms",
    "hooks": "what the hooks add to a step of an untouched PyTorch program",
    "profiling": "what a requested profile adds to the measured steps, and the profiler to its own",
    "startup": "`trainmark --help` against `python -c pass`",
    "report": "index and reports over 10,000 trials",
    "against": "report, index and `run quick` ÷ those of the checkout in BASELINE",
    "changes": "change points in 1,000,000 steps",
    "change_points": "steps missed and false alarms in histories, beside Apache Otava",
    "sequential": "wrong verdicts of the sequential test, and pairs until a verdict",
    "events": "1,000,000 steps of one rank, and 500 of 8,192 ranks, become a figure",
    "traces": "a profiler's trace read, beside json.load of it",
    "reading": "a foreign log read, beside a plain search of the same bytes",
    "sampler": "the device sampler at its two looks a second",
    "agents": "a trial on up to 1,000 nodes, as the harness sees it",
    "bisection": "how often a bisection takes a wrong half, over simulated noise, and its pairs",
    "forecast": "a forecast up to 4,096 devices",
    "server": "pages of a server with 100,000 results under 20 clients; pushes through 50 kills",
    "pictures": "generated pictures of ImageNet's size",
    "loading": "a set read by the host loader, at growing sizes",
    "conversion": "a set converted, at growing sizes, beside a plain copy of its files",
}


def main(names: list[str]) -> int:
    if unknown := [name for name in names if name not in MEASUREMENTS]:
        print(f"there is no measurement '{unknown[0]}'; there are {', '.join(MEASUREMENTS)}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    for name in names or MEASUREMENTS:
        print(f"{name}: {MEASUREMENTS[name]} …", flush=True)
        rows += importlib.import_module(f"benchmarks.{name}").measure()
    print(f"\n{table(rows)}")
    return 0 if all(row.holds is not False for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
