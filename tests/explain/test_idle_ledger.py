"""What is charged to a delay is what the program gains without it: shown by running both in miniature."""

from __future__ import annotations

import random

import pytest
from builders_idle import MICROSECOND, MILLISECOND, Machine, gaps

from trainmark.explain.delays import LOADER, SYNCHRONIZATION, Delay
from trainmark.explain.idle import LAUNCH, Ledger, causes

STEPS = 8
ITEM_ITSELF = 6 * MICROSECOND  # the call of its copy and the copy, which are no waiting
THREAD = frozenset({0})


def run(longest: int, seed: int, item: bool = False, fetch: int = 0) -> tuple[int, dict[str, int]]:
    """Sixty kernels a step, the host 8 µs for each: `longest` decides which of the two bounds the step."""
    choose = random.Random(seed)
    kernels = [choose.choice([2, 3, 5, longest]) * MICROSECOND for _ in range(60)]
    machine = Machine()
    machine.launch("warm", 5 * MICROSECOND)
    for _ in range(STEPS):
        with machine.step():
            with machine.annotation("trainmark_data"):
                machine.work(fetch)
            for kernel in kernels:
                machine.work(3 * MICROSECOND)
                machine.launch("kernel", kernel)
            if item:
                machine.item()
    profile = machine.profile()
    charged = {row.cause: row.nanoseconds for row in causes(profile, gaps(profile))}
    return profile.steps[-1].end - profile.steps[0].start, charged


@pytest.mark.parametrize("longest", [5, 10, 20, 40, 100])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_synchronisation_is_charged_what_the_program_gains_without_it(longest, seed):
    slow, charged = run(longest, seed, item=True)
    fast, _ = run(longest, seed)
    assert 0 <= slow - fast - charged["synchronisation"] <= STEPS * ITEM_ITSELF


@pytest.mark.parametrize("longest", [5, 10, 20, 40, 100])
@pytest.mark.parametrize("fetch", [MILLISECOND, 4 * MILLISECOND])
def test_a_loader_is_charged_what_the_program_gains_without_it(longest, fetch):
    slow, charged = run(longest, 0, fetch=fetch)
    fast, _ = run(longest, 0)
    assert charged["loader"] == pytest.approx(slow - fast, abs=STEPS * MICROSECOND)


def charges(ledger: Ledger, start: int, end: int) -> list[tuple[str, int]]:
    return [(charge.cause, charge.nanoseconds) for charge in ledger.charge(start, end, THREAD)]


def test_a_delay_is_charged_directly_then_by_its_credit_and_the_rest_is_launching():
    ledger = Ledger([Delay(0, 100, SYNCHRONIZATION, 0, 0, "wait")], lapse=1000)
    assert charges(ledger, 90, 300) == [(SYNCHRONIZATION, 10), (SYNCHRONIZATION, 90), (LAUNCH, 110)]


def test_time_before_a_delay_is_not_its():
    ledger = Ledger([Delay(100, 150, LOADER, 0, 0, "fetch")], lapse=1000)
    assert charges(ledger, 50, 160) == [(LAUNCH, 50), (LOADER, 50), (LAUNCH, 10)]


def test_credit_lapses_after_a_step():
    delay = Delay(0, 100, SYNCHRONIZATION, 0, 0, "wait")
    assert charges(Ledger([delay], lapse=50), 160, 170) == [(LAUNCH, 10)]


def test_the_latest_delay_pays_first():
    delays = [Delay(0, 100, SYNCHRONIZATION, 0, 0, "wait"), Delay(100, 120, LOADER, 0, 0, "fetch")]
    assert charges(Ledger(delays, lapse=1000), 120, 150) == [(LOADER, 20), (SYNCHRONIZATION, 10)]


def test_a_delay_of_a_thread_that_does_not_feed_the_device_pays_nothing():
    assert charges(Ledger([Delay(0, 100, LOADER, 7, 0, "fetch")], lapse=1000), 50, 60) == [(LAUNCH, 10)]
