"""What a throughput costs in money and in energy."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainmark.measure.figure import Result
from trainmark.measure.key import Key

MILLION = 1e6
SECONDS_PER_HOUR = 3600.0
JOULES_PER_KWH = 3.6e6
WRITTEN = re.compile(
    r"(?P<currency>[^\d\s.,+/-]{0,3})\s*(?P<amount>\d{1,9}(?:\.\d{1,9})?)\s*(?:/\s*(?:(?P<what>device|node)-)?h)?"
)


@dataclass(frozen=True)
class Price:
    """The price of one device for an hour, or of one node where `per_node`."""

    amount: float
    per_node: bool = False
    currency: str = ""

    def hourly(self, key: Key) -> float:
        """Return what all devices of a case cost in an hour."""
        return self.amount * (key.nodes if self.per_node else key.devices)

    def __str__(self) -> str:
        return f"{self.currency}{self.amount:,g} a {'node' if self.per_node else 'device'}-hour"


@dataclass(frozen=True)
class Cost:
    """Of a million samples and of the training to its finish line; None where that is not known."""

    per_million: float | None
    to_target: float | None
    kwh_per_million: float | None


def parse_price(text: str) -> Price:
    """`2.50/h`, `$2.50/h` or `2.50/device-h` for one device, `98/node-h` for one node."""
    match = WRITTEN.fullmatch(text.strip())
    if not match:
        raise ValueError(f"'{text}' is not a price; write 2.50/h for one device, or 98/node-h for one node")
    return Price(float(match["amount"]), match["what"] == "node", match["currency"])


def cost_of(result: Result, price: Price | None) -> Cost:
    """Money needs a price; energy is that of the devices, and of the processors where those report it."""
    hourly = None if price is None else price.hourly(result.key)
    seconds = result.finish.time2train if result.finish else None
    return Cost(
        per_million=_per_million(hourly, result.throughput),
        to_target=None if hourly is None or seconds is None else hourly * seconds / SECONDS_PER_HOUR,
        kwh_per_million=kwh_per_million(result.samples_per_joule),
    )


def kwh_per_million(samples_per_joule: float | None) -> float | None:
    return MILLION / samples_per_joule / JOULES_PER_KWH if samples_per_joule else None


def _per_million(hourly: float | None, throughput: float) -> float | None:
    if hourly is None or throughput <= 0:
        return None
    return hourly * MILLION / throughput / SECONDS_PER_HOUR
