"""Which link, rank or node holds a fabric back, judged only against its like."""

from __future__ import annotations

import statistics
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from trainmark.measure.fabric import Link
from trainmark.measure.quantity import rate_words, seconds_words

LEAST_SHARE = 0.7  # of the bandwidth that comparable links have
MOST_TIMES = 1.5  # the latency that comparable links have

Pair = tuple[str, str]


@dataclass(frozen=True)
class Slow:
    """A `node`, `rank` or `link` whose `bandwidth` or `latency` is far from the usual one of its like."""

    what: str
    names: tuple[str, ...]
    figure: str
    value: float
    usual: float

    @property
    def times(self) -> float:
        """How often the usual is in it (latency), or it in the usual (bandwidth)."""
        return self.value / self.usual if self.figure == "latency" else self.usual / self.value

    @property
    def message(self) -> str:
        name = " – ".join(self.names)
        subject = f"link {name} has" if self.what == "link" else f"all links of {name} have"
        late = self.figure == "latency"
        how = f"{self.times:.1f} times the latency" if late else f"{100 / self.times:.0f} % of the bandwidth"
        value, usual = ((seconds_words if late else rate_words)(each) for each in (self.value, self.usual))
        return f"{subject} {how} of comparable links: {value}, not {usual}"


@dataclass(frozen=True)
class Cost:
    """What a link takes (seconds, or seconds a byte), and the least and the most that it may take."""

    seconds: float
    least: float
    most: float


@dataclass(frozen=True)
class Odd:
    """Ends all of whose links are slow, and slow links elsewhere, each with its cost and the usual one."""

    ends: Mapping[str, tuple[float, float]]
    pairs: Mapping[Pair, tuple[float, float]]


def slow_parts(links: Sequence[Link]) -> list[Slow]:
    """Links between nodes are compared with such links, links inside a node with those of all nodes."""
    between = [link for link in links if not link.same_node]
    inside = [link for link in links if link.same_node]
    return [
        slow
        for figure, cost, limit in (("bandwidth", _byte, 1 / LEAST_SHARE), ("latency", _latency, MOST_TIMES))
        for slow in (
            *_between(between, figure, cost, limit),
            *_slow_ones(odd_ones(_costs(inside, ranks_of, cost), limit), "rank", figure),
        )
    ]


def odd_ones(costs: Mapping[Pair, Cost], limit: float) -> Odd:
    """What takes more than `limit` times the median of the rest, whatever the intervals leave open.

    So even its least is compared with the median of the most that the rest may take. An end is odd if each
    of its links, at least two, is so against the links that do not touch it; then its links are not named
    one by one, nor used to judge others.
    """
    ends: dict[str, tuple[float, float]] = {}
    for end in sorted({end for pair in costs for end in pair}):
        own = [cost for pair, cost in costs.items() if end in pair]
        rest = [cost for pair, cost in costs.items() if end not in pair]
        if len(own) < 2 or not rest:
            continue
        bound = limit * statistics.median(cost.most for cost in rest)
        if all(cost.least > bound for cost in own):
            ends[end] = _median(own), _median(rest)
    left = {pair: cost for pair, cost in costs.items() if ends.keys().isdisjoint(pair)}
    seconds = sorted(cost.seconds for cost in left.values())
    most = sorted(cost.most for cost in left.values())
    pairs = {
        pair: (cost.seconds, median_without(seconds, cost.seconds))
        for pair, cost in left.items()
        if len(left) > 2 and cost.least > limit * median_without(most, cost.most)
    }
    return Odd(ends, pairs)


def median_without(ordered: Sequence[float], value: float) -> float:
    """The median of sorted values less one of them, without sorting the rest again for each link."""
    gone, rest = bisect_left(ordered, value), len(ordered) - 1
    low, high = (ordered[at + (at >= gone)] for at in ((rest - 1) // 2, rest // 2))
    return (low + high) / 2


def ranks_of(link: Link) -> Pair:
    first, second = link.ranks
    return f"rank {first} on {link.nodes[0]}", f"rank {second} on {link.nodes[1]}"


def nodes_of(link: Link) -> Pair:
    first, second = sorted(link.nodes)
    return first, second


def _between(
    links: Sequence[Link], figure: str, cost: Callable[[Link], Cost | None], limit: float
) -> Iterator[Slow]:
    """Nodes and their links first; then, where a node has several ranks, single ranks and pairs of them."""
    odd = odd_ones(_costs(links, nodes_of, cost), limit)
    yield from _slow_ones(odd, "node", figure)
    rest = [
        link for link in links if odd.ends.keys().isdisjoint(link.nodes) and nodes_of(link) not in odd.pairs
    ]
    if len({nodes_of(link) for link in rest}) < len(rest):
        yield from _slow_ones(odd_ones(_costs(rest, ranks_of, cost), limit), "rank", figure)


def _slow_ones(odd: Odd, end: str, figure: str) -> Iterator[Slow]:
    for name, (value, usual) in odd.ends.items():
        yield Slow(end, (name,), figure, *_shown(figure, value, usual))
    for pair, (value, usual) in odd.pairs.items():
        yield Slow("link", pair, figure, *_shown(figure, value, usual))


def _shown(figure: str, value: float, usual: float) -> tuple[float, float]:
    return (1 / value, 1 / usual) if figure == "bandwidth" else (value, usual)


def _costs(
    links: Sequence[Link], name: Callable[[Link], Pair], cost: Callable[[Link], Cost | None]
) -> dict[Pair, Cost]:
    """The best of the links of one name: a pair of nodes is slow only where all their ranks are."""
    costs_by_pair: dict[Pair, list[Cost]] = defaultdict(list)
    for link in links:
        if known := cost(link):
            costs_by_pair[name(link)].append(known)
    return {
        pair: Cost(
            min(each.seconds for each in costs),
            min(each.least for each in costs),
            min(each.most for each in costs),
        )
        for pair, costs in costs_by_pair.items()
    }


def _median(costs: Sequence[Cost]) -> float:
    return statistics.median(cost.seconds for cost in costs)


def _byte(link: Link) -> Cost | None:
    if not link.bytes_per_second or not link.rate_range:
        return None
    least, greatest = link.rate_range
    return Cost(1 / link.bytes_per_second, 1 / greatest, 1 / least)


def _latency(link: Link) -> Cost:
    return Cost(link.latency.seconds, link.latency.low, link.latency.high)
