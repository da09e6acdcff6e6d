"""The fabric of a run: what is slow, each link beside comparable ones, and collectives."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainmark.measure.fabric import (
    LEAST_BANDWIDTH_SHARE,
    MOST_LATENCY_TIMES,
    AllReduce,
    FabricMeasurement,
    Link,
    SlowPart,
    alpha_beta_model,
    bus_factor,
    concerns,
    slow_parts,
)
from trainmark.measure.quantity import bytes_words, rate_words, seconds_words
from trainmark.pages import fabric_map, number
from trainmark.pages.fabric_map import described, place_words, slow_words, verdicts
from trainmark.view.blocks import (
    Answer,
    Block,
    Drawing,
    Items,
    Page,
    Section,
    Sentence,
    Table,
    Text,
    only,
    without,
)
from trainmark.view.message import Message, _

MOST_LINKS = 28  # all pairs of eight ranks; of more, the slowest


def fabric_page(fabric: FabricMeasurement) -> Page:
    lede = _(
        "Latency and bandwidth between the ranks of one job, and the links that are slow beside comparable"
        " ones."
    )
    return Page(
        _("Fabric"),
        (
            only(
                "html",
                Answer([lede, *verdicts(slow_parts(fabric.links))], look=""),
                Section(_("Map and links"), list(fabric_blocks(fabric))),
                Section(_("What holds for these figures"), [Items(list(_conditions(fabric)))]),
            ),
            without("html", *fabric_blocks(fabric)),
        ),
    )


def fabric_blocks(fabric: FabricMeasurement) -> Iterator[Block]:
    """Yield what is shown under a heading of the caller's."""
    slow = slow_parts(fabric.links)
    links = links_table(fabric, slow)
    yield only("html", Drawing(lambda lang: fabric_map.render(fabric, lang)), Section(_("Links"), [links]))
    yield without("html", Sentence(described(fabric)), links)
    for reduced in fabric.all_reduces:
        yield Section(_title(reduced), [_all_reduce(reduced)])
    for printed in fabric.nccl_tests:
        name = _("{program} of nccl-tests on {node}", program=printed["program"], node=printed["node"])
        yield Section(name, [_nccl_test(printed)])
    yield without("html", Items(verdicts(slow)))


def _conditions(fabric: FabricMeasurement) -> Iterator[Message]:
    yield _(
        "Messages go between ranks of this program on an otherwise idle machine; other jobs on the same"
        " network change them."
    )
    if fabric.together:
        yield _(
            "Pairs that share no rank talked at the same time: a figure is what a link leaves to the others."
        )
    else:
        yield _(
            "One pair talked at a time: a figure is what a link can do alone, not under the load of a"
            " training."
        )
    yield _(
        "A latency is the time of the smallest message and includes starting it on the device; a bandwidth is"
        " the slope over all sizes."
    )
    yield _(
        "A time is the median of its repetitions with a 95 % interval. A link is slow where even the best"
        " that its interval allows is below {least} of the bandwidth, or above {most} times the latency, of"
        " the median link.",
        least=number.percent(LEAST_BANDWIDTH_SHARE, 0),
        most=f"{MOST_LATENCY_TIMES:g}",
    )


def _title(reduced: AllReduce) -> Message:
    fitted = alpha_beta_model(reduced.points)
    rate = fitted.bytes_per_second
    return _(
        "All-reduce over {place}: latency {latency}, bus bandwidth {bandwidth}",
        place=place_words(reduced.ranks, reduced.nodes),
        latency=seconds_words(fitted.latency_seconds),
        bandwidth=rate_words(None if rate is None else bus_factor(reduced.ranks) * rate),
    )


def links_table(fabric: FabricMeasurement, slow: Sequence[SlowPart]) -> Table:
    alone = len(set(fabric.nodes)) == 1
    named = [(link, [each for each in slow if concerns(each, link)]) for link in fabric.links]
    if len(named) > MOST_LINKS:
        named.sort(key=lambda each: (-len(each[1]), each[0].bytes_per_second or 0.0))
        named = named[:MOST_LINKS]
    rows: list[list[Text]] = [
        [
            f"{link.ranks[0]} – {link.ranks[1]}",
            "" if alone else link.nodes[0] if link.same_node else " – ".join(link.nodes),
            seconds_words(link.latency.seconds),
            f"[{seconds_words(link.latency.low)}, {seconds_words(link.latency.high)}]",
            rate_words(link.bytes_per_second),
            slow_words(frozenset(each.figure for each in concerning)) if concerning else "",
        ]
        for link, concerning in named
    ]
    nodes = "" if alone else _("nodes")
    header = (_("ranks"), nodes, _("latency"), _("95 % interval"), _("bandwidth"), "")
    return Table(header, rows, frozenset({2, 3, 4}), notes=_left_out(fabric.links))


def _left_out(links: Sequence[Link]) -> list[Text]:
    if len(links) <= MOST_LINKS:
        return []
    rates = [rate for link in links if (rate := link.bytes_per_second)]
    median = rate_words(statistics.median(rates)) if rates else number.MISSING
    return [
        _(
            "The slowest {most} of {count} links; the median has {median}.",
            most=MOST_LINKS,
            count=len(links),
            median=median,
        )
    ]


def _all_reduce(reduced: AllReduce) -> Table:
    rows = [
        (
            bytes_words(point.bytes),
            seconds_words(point.seconds),
            f"[{seconds_words(point.low)}, {seconds_words(point.high)}]",
            rate_words(reduced.bus_bytes_per_second(point)),
        )
        for point in reduced.points
    ]
    header = (_("size"), _("time"), _("95 % interval"), _("bus bandwidth"))
    return Table(header, rows, frozenset({0, 1, 2, 3}))


def _nccl_test(printed: Mapping[str, Any]) -> Table:
    """What a program of nccl-tests printed of one node, under its own name."""
    rows = [
        (
            bytes_words(each["bytes"]),
            seconds_words(each["seconds"]),
            rate_words(each["bus_bytes_per_second"]),
        )
        for each in printed["sizes"]
    ]
    return Table((_("size"), _("time"), _("bus bandwidth")), rows, frozenset({0, 1, 2}))
