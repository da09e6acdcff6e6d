"""A forecast up to 4,096 devices: what it learns from the ledger, and the simulation of every size."""

from __future__ import annotations

import time

from benchmarks.row import Row, from_repeats
from trainmark.forecast.fabric import EDR, ONE_DEVICE, Size
from trainmark.forecast.forecast import forecast
from trainmark.forecast.model import ForecastCase
from trainmark.forecast.step import expected_largest, fill_buckets, layers_of, slowest_rank
from trainmark.forecast.validation import fit_published, validate
from trainmark.logs.ledger import load

MOST_SECONDS = 5.0


def measure(nodes: int = 512, repeats: int = 3) -> list[Row]:
    sizes = [Size(1 << more, 8) for more in range(nodes.bit_length())]
    entries = load()
    asked, checked = [], []
    for _ in range(repeats):
        # As in a process of its own: nothing sampled before.
        expected_largest.cache_clear()
        slowest_rank.cache_clear()
        began = time.perf_counter()
        case = ForecastCase(
            {ONE_DEVICE: 0.0421},
            256,
            fill_buckets(layers_of("resnet50") or ()),
            EDR,
            loaded=True,
            variation=0.02,
        )
        forecast(case, sizes, fit_published(entries))
        asked.append(time.perf_counter() - began)
        began = time.perf_counter()
        validate(entries)
        checked.append(time.perf_counter() - began)
    return [
        from_repeats(f"forecast: up to {sizes[-1].devices:,} devices", asked, "s", MOST_SECONDS),
        from_repeats("forecast: the published series, all of them", checked, "s", MOST_SECONDS),
    ]
