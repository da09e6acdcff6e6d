"""What a fabric does with a message, and which link, rank or node holds it back.

Times by size give the line of latency and bandwidth behind them; a part is judged only against its like.
"""

from __future__ import annotations

import statistics
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from typing import Any

from trainmark.measure.quantity import rate_words, seconds_words
from trainmark.measure.statistics import median_interval
from trainmark.view.message import Message, _


@dataclass(frozen=True)
class MessageTime:
    """The median time of one size and its interval; a link's time is one way."""

    bytes: int
    seconds: float
    low: float
    high: float


@dataclass(frozen=True)
class AlphaBetaModel:
    """t(n) = latency + n ÷ bandwidth; the bandwidth is None where time does not grow with size."""

    latency_seconds: float
    bytes_per_second: float | None


@dataclass(frozen=True)
class Link:
    """Two ranks, the lower one first, and the time of a message between them."""

    ranks: tuple[int, int]
    nodes: tuple[str, str]
    points: tuple[MessageTime, ...]

    @property
    def same_node(self) -> bool:
        return self.nodes[0] == self.nodes[1]

    @property
    def latency(self) -> MessageTime:
        """That of the smallest message: what a ping-pong shows, with its interval."""
        return self.points[0]

    @cached_property
    def bytes_per_second(self) -> float | None:
        return alpha_beta_model(self.points).bytes_per_second

    @cached_property
    def rate_range(self) -> tuple[float, float] | None:
        """The least and the greatest bandwidth, from the times and from either end of their intervals."""
        ends = (
            [(each.bytes, each.low) for each in self.points],
            [(each.bytes, each.seconds) for each in self.points],
            [(each.bytes, each.high) for each in self.points],
        )
        rates = [rate for times in ends if (rate := fit_alpha_beta(times).bytes_per_second)]
        return (min(rates), max(rates)) if rates else None


@dataclass(frozen=True)
class AllReduce:
    """A sum over `ranks` ranks on `nodes` nodes, by size."""

    ranks: int
    nodes: int
    points: tuple[MessageTime, ...]

    def bus_bytes_per_second(self, point: MessageTime) -> float:
        """What each rank must at least send in the time: 2(p − 1) ÷ p of the message."""
        return bus_factor(self.ranks) * point.bytes / point.seconds


@dataclass(frozen=True)
class FabricMeasurement:
    """One measurement; `nodes` has the name of each rank's node, `together` says whether pairs ran at once.

    `nccl_tests` is what those programs printed where they were there, as it is kept.
    """

    taken: str
    device: str
    backend: str
    together: bool
    nodes: tuple[str, ...]
    links: tuple[Link, ...]
    all_reduces: tuple[AllReduce, ...]
    nccl_tests: tuple[Mapping[str, Any], ...] = ()


def bus_factor(ranks: int) -> float:
    return 2 * (ranks - 1) / ranks


def message_time(size: int, turns: Sequence[Sequence[float]]) -> MessageTime:
    """From the times of each turn: the interval is that of all, widened to hold the median of every turn.

    Times of one turn are alike because they were taken together, and would claim too much by themselves.
    """
    times, medians = list(chain(*turns)), [statistics.median(turn) for turn in turns]
    interval = median_interval(times)
    bounds = (*medians, interval.low, interval.high) if interval else medians
    return MessageTime(size, statistics.median(times), min(bounds), max(bounds))


def alpha_beta_model(points: Iterable[MessageTime]) -> AlphaBetaModel:
    return fit_alpha_beta([(point.bytes, point.seconds) for point in points])


def fit_alpha_beta(times: Sequence[tuple[int, float]]) -> AlphaBetaModel:
    """The line from which the times of all sizes differ least, each as a share of itself.

    Least absolute deviations: a size that falls off the line (another protocol, a cache left behind) does
    not bend it. Such a line, with neither number below zero, passes through two of the points or through
    one of them and a bound; there are few enough to try them all.
    """
    if not times:
        raise ValueError("no times to fit a line to")
    through_two = [
        (late - growth * more, growth)
        for (less, early), (more, late) in combinations(sorted(times), 2)
        if more > less
        for growth in [(late - early) / (more - less)]
    ]
    no_latency = [(0.0, seconds / size) for size, seconds in times]
    no_growth = [(seconds, 0.0) for _, seconds in times]
    candidates = [(a, b) for a, b in (*through_two, *no_growth, *no_latency) if a >= 0 and b >= 0]

    def deviation(candidate: tuple[float, float]) -> float:
        latency, growth = candidate
        return sum(abs(latency + growth * size - seconds) / seconds for size, seconds in times)

    latency, growth = min(candidates, key=deviation)
    return AlphaBetaModel(latency, 1 / growth if growth > 0 else None)


LEAST_BANDWIDTH_SHARE = 0.7  # of the bandwidth that comparable links have
MOST_LATENCY_TIMES = 1.5  # the latency that comparable links have

Pair = tuple[str, str]


@dataclass(frozen=True)
class SlowPart:
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
    def message(self) -> Message:
        name, what = " – ".join(self.names), self.what
        subject = (
            _("link {name} has", name=name) if what == "link" else _("all links of {name} have", name=name)
        )
        if self.figure == "latency":
            return _(
                "{subject} {times} times the latency of comparable links: {value}, not {usual}",
                subject=subject,
                times=f"{self.times:.1f}",
                value=seconds_words(self.value),
                usual=seconds_words(self.usual),
            )
        return _(
            "{subject} {share} % of the bandwidth of comparable links: {value}, not {usual}",
            subject=subject,
            share=f"{100 / self.times:.0f}",
            value=rate_words(self.value),
            usual=rate_words(self.usual),
        )


@dataclass(frozen=True)
class LinkCost:
    """What a link takes (seconds, or seconds a byte), and the least and the most that it may take."""

    seconds: float
    least: float
    most: float


@dataclass(frozen=True)
class SlowLinks:
    """Ends all of whose links are slow, and slow links elsewhere, each with its cost and the usual one."""

    ends: Mapping[str, tuple[float, float]]
    pairs: Mapping[Pair, tuple[float, float]]


def slow_parts(links: Sequence[Link]) -> list[SlowPart]:
    """Links between nodes are compared with such links, links inside a node with those of all nodes."""
    between = [link for link in links if not link.same_node]
    inside = [link for link in links if link.same_node]
    return [
        slow
        for figure, cost, limit in (
            ("bandwidth", _byte_cost, 1 / LEAST_BANDWIDTH_SHARE),
            ("latency", _latency_cost, MOST_LATENCY_TIMES),
        )
        for slow in (
            *_slow_between_nodes(between, figure, cost, limit),
            *_as_slow_parts(find_slow_links(_costs(inside, rank_pair, cost), limit), "rank", figure),
        )
    ]


def find_slow_links(costs: Mapping[Pair, LinkCost], limit: float) -> SlowLinks:
    """What takes more than `limit` times the median of the rest, whatever the intervals leave open.

    So even its least is compared with the median of the most that the rest may take. An end is slow if each
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
    return SlowLinks(ends, pairs)


def median_without(ordered: Sequence[float], value: float) -> float:
    """The median of sorted values less one of them, without sorting the rest again for each link."""
    gone, rest = bisect_left(ordered, value), len(ordered) - 1
    low, high = (ordered[at + (at >= gone)] for at in ((rest - 1) // 2, rest // 2))
    return (low + high) / 2


def rank_pair(link: Link) -> Pair:
    first, second = link.ranks
    return f"rank {first} on {link.nodes[0]}", f"rank {second} on {link.nodes[1]}"


def node_pair(link: Link) -> Pair:
    first, second = sorted(link.nodes)
    return first, second


def _slow_between_nodes(
    links: Sequence[Link], figure: str, cost: Callable[[Link], LinkCost | None], limit: float
) -> Iterator[SlowPart]:
    """Nodes and their links first; then, where a node has several ranks, single ranks and pairs of them."""
    slow = find_slow_links(_costs(links, node_pair, cost), limit)
    yield from _as_slow_parts(slow, "node", figure)
    rest = [
        link
        for link in links
        if slow.ends.keys().isdisjoint(link.nodes) and node_pair(link) not in slow.pairs
    ]
    if len({node_pair(link) for link in rest}) < len(rest):
        yield from _as_slow_parts(find_slow_links(_costs(rest, rank_pair, cost), limit), "rank", figure)


def _as_slow_parts(slow: SlowLinks, end: str, figure: str) -> Iterator[SlowPart]:
    for name, (value, usual) in slow.ends.items():
        yield SlowPart(end, (name,), figure, *_as_measured(figure, value, usual))
    for pair, (value, usual) in slow.pairs.items():
        yield SlowPart("link", pair, figure, *_as_measured(figure, value, usual))


def _as_measured(figure: str, value: float, usual: float) -> tuple[float, float]:
    return (1 / value, 1 / usual) if figure == "bandwidth" else (value, usual)


def _costs(
    links: Sequence[Link], name: Callable[[Link], Pair], cost: Callable[[Link], LinkCost | None]
) -> dict[Pair, LinkCost]:
    """The best of the links of one name: a pair of nodes is slow only where all their ranks are."""
    costs_by_pair: dict[Pair, list[LinkCost]] = defaultdict(list)
    for link in links:
        if known := cost(link):
            costs_by_pair[name(link)].append(known)
    return {
        pair: LinkCost(
            min(each.seconds for each in costs),
            min(each.least for each in costs),
            min(each.most for each in costs),
        )
        for pair, costs in costs_by_pair.items()
    }


def _median(costs: Sequence[LinkCost]) -> float:
    return statistics.median(cost.seconds for cost in costs)


def _byte_cost(link: Link) -> LinkCost | None:
    if not link.bytes_per_second or not link.rate_range:
        return None
    least, greatest = link.rate_range
    return LinkCost(1 / link.bytes_per_second, 1 / greatest, 1 / least)


def _latency_cost(link: Link) -> LinkCost:
    return LinkCost(link.latency.seconds, link.latency.low, link.latency.high)


def concerns(slow: SlowPart, link: Link) -> bool:
    """Whether this verdict is about this link."""
    if slow.what == "link":
        return slow.names in (rank_pair(link), node_pair(link))
    ends = link.nodes if slow.what == "node" else rank_pair(link)
    return not (link.same_node and slow.what == "node") and slow.names[0] in ends
