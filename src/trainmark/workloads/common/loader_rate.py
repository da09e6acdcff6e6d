"""The rate of a loader alone: its batches in so many seconds, and their CPU time."""

import time

WARM_BATCHES = 4


def timed(batches, seconds, warm_seconds, cpu_seconds=time.process_time):
    """Return the number of batches, their seconds and their CPU seconds, after a warm-up.

    The warm-up lasts `warm_seconds` and at least WARM_BATCHES; `cpu_seconds` is the clock of CPU time.
    """
    began = time.perf_counter()
    for count, _ in enumerate(batches, 1):
        if count >= WARM_BATCHES and time.perf_counter() - began >= warm_seconds:
            break
    cpu, wall, count, elapsed = cpu_seconds(), time.perf_counter(), 0, 0.0
    for _ in batches:
        count += 1
        elapsed = time.perf_counter() - wall
        if elapsed >= seconds:
            break
    return count, elapsed, cpu_seconds() - cpu
