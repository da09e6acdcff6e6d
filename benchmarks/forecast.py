"""A forecast up to 4,096 devices: what it learns from the ledger, and the simulation of every size."""

from __future__ import annotations

import time

from benchmarks.row import Row, from_repeats
from trainmark.forecast.case import Case
from trainmark.forecast.forecast import forecast
from trainmark.forecast.size import ONE_DEVICE, Size
from trainmark.forecast.step.buckets import bucketed
from trainmark.forecast.step.fabric import EDR
from trainmark.forecast.step.layers import layers_of
from trainmark.forecast.step.stragglers import expected_largest, slowest_rank
from trainmark.forecast.validation.validate import learn_published, validate
from trainmark.published.ledger import load

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
        case = Case(
            {ONE_DEVICE: 0.0421}, 256, bucketed(layers_of("resnet50") or ()), EDR, loaded=True, variation=0.02
        )
        forecast(case, sizes, learn_published(entries))
        asked.append(time.perf_counter() - began)
        began = time.perf_counter()
        validate(entries)
        checked.append(time.perf_counter() - began)
    return [
        from_repeats(f"forecast: up to {sizes[-1].devices:,} devices", asked, "s", MOST_SECONDS),
        from_repeats("forecast: the published series, all of them", checked, "s", MOST_SECONDS),
    ]
