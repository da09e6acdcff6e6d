"""The best that a device reaches in a large product or copy."""

from trainmark.probe import HostClock

LONG_ENOUGH = 5.0  # seconds, for a peak
COPIES = 16  # of a device's memory, one behind the other: what the first waits for weighs little


def peak_flops(product, side, clock=None):
    """Return the best of several square matrix products on the clock of the device, else of the host."""
    return 2 * side**3 / shortest(product, clock)


def shortest(work, clock=None):
    """Return the seconds of the quickest of eight; of fewer where they take long, as halves on some CPUs."""
    clock, times = clock or HostClock(), []
    while len(times) < 8 and sum(times) < LONG_ENOUGH:
        begin = clock.seconds(clock.mark(), wait=True)
        work()
        times.append(clock.seconds(clock.mark(), wait=True) - begin)
    return min(times)
