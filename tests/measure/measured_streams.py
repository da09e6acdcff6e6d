"""Streams whose truth is known, as arrays, as traces and as events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from trainmark.events import DeviceSample, Event, RunEnd, RunStart, Scope, Step
from trainmark.measure.figure import StepTimes, TrialFigure, Window, WindowVerdict
from trainmark.measure.key import Key
from trainmark.measure.result import CaseTrial
from trainmark.measure.trace import Clock, Trace

KEY = Key(workload="resnet50", framework="pytorch", framework_version="2.9", batch_per_device=64)
STARTED = 1000.0
WALL_OFFSET = 1_700_000_000.0


def events_of(
    step_seconds: np.ndarray,
    samples: float = 64,
    ranks: int = 1,
    scope: Scope = Scope.RANK,
    late: dict[int, float] | None = None,
    nodes: Sequence[str] | None = None,
    waits: np.ndarray | None = None,
    **step_fields: object,
) -> Iterator[Event]:
    """All ranks' events, rank after rank; `late` ranks end every step so much later.

    `waits` says by rank, or by rank and step, how long a rank did nothing but wait for the others.
    """
    ends = STARTED + np.cumsum(step_seconds)
    for rank in range(ranks):
        facts = {"device_name": "cpu", **({"node": nodes[rank]} if nodes else {})}
        yield RunStart(rank, ranks, STARTED, STARTED + WALL_OFFSET, "images", scope, facts)
        if waits is not None:
            waited = np.broadcast_to(np.reshape(waits[rank], (-1,)), len(ends))
        delay = (late or {}).get(rank, 0.0)
        for step, end in enumerate(ends):
            wait_fields = {} if waits is None else {"communication": float(waited[step])}
            yield Step(
                rank, step, end + delay, end + delay + WALL_OFFSET, samples, **wait_fields, **step_fields
            )
        yield RunEnd(rank, float(ends[-1]) + 1, float(ends[-1]) + 1 + WALL_OFFSET, {"peak_flops": 1e12})


def trace_from(step_seconds: np.ndarray, samples: float = 64) -> Trace:
    """What `trace_of` makes of one rank's steps, without the events."""
    return Trace(
        world_size=1,
        unit="images",
        facts={},
        end_facts=(),
        clock=Clock(monotonic=True, wall_offset=WALL_OFFSET),
        start=STARTED,
        ends=STARTED + np.cumsum(step_seconds),
        samples=np.full(len(step_seconds), samples, dtype=float),
        loss_steps=np.array([], dtype=np.int64),
        losses=np.array([]),
        data_wait=None,
        memory=None,
        rank_seconds=step_seconds[None, :],
    )


def device_sample(at: float, device: str = "cuda:0", **fields: object) -> DeviceSample:
    return DeviceSample(device, mono=at, wall=at + WALL_OFFSET, **fields)


def autocorrelated(rng: np.random.Generator, shape: tuple[int, int], sigma: float, rho: float) -> np.ndarray:
    """Rows of first-order autoregressive noise with the given standard deviation."""
    noise = rng.normal(size=shape) * sigma
    for step in range(1, shape[1]):
        noise[:, step] = rho * noise[:, step - 1] + np.sqrt(1 - rho**2) * noise[:, step]
    return noise


def level_runs(rng: np.random.Generator, runs: int, steps: int, sigma: float = 0.015) -> np.ndarray:
    """Step times around one second: autocorrelated noise, and a stall at every fiftieth step or so."""
    seconds = 1 + autocorrelated(rng, (runs, steps), sigma, 0.5)
    return seconds * np.where(rng.random((runs, steps)) < 0.02, 2.0, 1.0)


def figure_with(throughput: float, **fields: object) -> TrialFigure:
    known: dict[str, object] = {
        "throughput": throughput,
        "interval": None,
        "unit": "images",
        "world_size": 1,
        "window": Window(5, 105, WindowVerdict.SETTLED),
        "step_times": StepTimes(0.1, 0.1, 0.11, 0.12, 0.2),
        "first_step_seconds": 3.0,
        "seconds": 10.0,
        "samples": throughput * 10,
    }
    return TrialFigure(**{**known, **fields})


def trials_with(throughputs: list[float], key: Key = KEY, **fields: object) -> list[CaseTrial]:
    return [CaseTrial(key, figure_with(value, **fields)) for value in throughputs]
