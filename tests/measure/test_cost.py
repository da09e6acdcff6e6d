from dataclasses import replace

import pytest
from measured_streams import KEY, trials_with

from trainmark.measure.cost import Price, cost_of, kwh_per_million, parse_price
from trainmark.measure.result import summarize


def result(rate=1000.0, **changes):
    (made,) = summarize(trials_with([rate] * 6, replace(KEY, **changes)))
    return made


@pytest.mark.parametrize(
    ("text", "price"),
    [
        ("2.50/h", Price(2.5)),
        ("2.5", Price(2.5)),
        (" $2.50 / h ", Price(2.5, currency="$")),
        ("2.50/device-h", Price(2.5)),
        ("¥98/node-h", Price(98, True, "¥")),
    ],
)
def test_prices_as_people_write_them(text, price):
    assert parse_price(text) == price


@pytest.mark.parametrize("text", ["", "h", "-1/h", "1/d", "1,5/h", "nan", "inf/h", "1e3/h", "2.50/h/h"])
def test_what_is_no_price_is_refused(text):
    with pytest.raises(ValueError, match="is not a price"):
        parse_price(text)


def test_a_million_samples_at_a_thousand_a_second_take_a_thousand_device_seconds():
    cost = cost_of(result(), Price(3.6))
    assert cost.per_million == pytest.approx(3.6 * 1000 / 3600)
    assert cost.to_target is None


def test_a_device_price_counts_every_device_and_a_node_price_every_node():
    placed = result(nodes=2, devices_per_node=8)
    assert Price(1.0).hourly(placed.key) == 16
    assert Price(1.0, per_node=True).hourly(placed.key) == 2


def test_without_a_price_only_the_energy_is_known():
    cost = cost_of(replace(result(), samples_per_joule=2.0), None)
    assert cost.per_million is None
    assert cost.kwh_per_million == pytest.approx(1e6 / 2 / 3.6e6)


def test_energy_that_nobody_measured_is_not_known():
    assert kwh_per_million(None) is None and kwh_per_million(0.0) is None
