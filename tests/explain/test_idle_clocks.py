"""Throttled clocks are distinguished from those of a resting device."""

from __future__ import annotations

from trainmark.events import DeviceSample
from trainmark.explain.agreement import slowdown


def samples(clock, throttle=(), utilisation=1.0, device="cuda:0", count=10):
    return [
        DeviceSample(
            device,
            float(second),
            float(second),
            utilisation=utilisation,
            power_watts=350.0,
            temperature_c=60.0,
            clock_mhz=clock,
            clock_max_mhz=1980.0,
            throttle=throttle,
        )
        for second in range(count)
    ]


def test_a_power_cap_is_named_with_the_time_it_costs():
    slow = slowdown(samples(990.0, ("sw-power-cap",)), arithmetic=10_000_000)
    assert slow is not None
    assert (slow.reasons, slow.throttled, slow.lost) == (("sw-power-cap",), 1.0, 5_000_000)
    assert slow.sentence == (
        "cuda:0: SM clock 990 of 1,980 MHz on average, throttled in 100% of 10 samples (sw-power-cap), "
        "350 W, 60 °C at most."
    )


def test_full_clocks_are_no_slowdown_even_where_a_reason_is_set():
    assert slowdown(samples(1965.0, ("sw-power-cap",))) is None


def test_the_low_clock_of_a_resting_device_is_no_slowdown():
    assert slowdown(samples(210.0, ("idle",), utilisation=0.0) + samples(1980.0)) is None


def test_locked_clocks_without_a_reason_are_reported():
    slow = slowdown(samples(1200.0))
    assert slow is not None
    assert slow.reasons == ()
    assert "clocks may be locked" in slow.sentence


def test_of_several_devices_the_slowest_is_reported_and_hosts_are_none():
    rows = samples(1500.0) + samples(900.0, ("hw-thermal",), device="cuda:1") + samples(800.0, device="cpu")
    slow = slowdown(rows)
    assert slow is not None
    assert (slow.device, slow.reasons) == ("cuda:1", ("hw-thermal",))
