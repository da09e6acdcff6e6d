"""A fabric in words: tables of links and all-reduces, and what is slow; for terminal and Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from trainmark.base.text import one_line
from trainmark.measure.fabric import (
    AllReduce,
    FabricMeasurement,
    Link,
    SlowPart,
    alpha_beta_model,
    bus_factor,
    node_pair,
    rank_pair,
    slow_parts,
)
from trainmark.measure.quantity import bytes_words, rate_words, seconds_words
from trainmark.report.format import markup
from trainmark.report.format.table import Table

MOST_LINKS = 28  # all pairs of eight ranks; of more, the slowest
NOTHING_SLOW = "No link is slow beside comparable ones."


def lines(fabric: FabricMeasurement, width: int | None = None) -> list[str]:
    """For a terminal."""
    slow = slow_parts(fabric.links)
    shown = [described(fabric), "", *links(fabric, slow).lines(width), *left_out(fabric)]
    for reduced in fabric.all_reduces:
        shown += ["", title(reduced), *all_reduce(reduced).lines(width)]
    for printed in fabric.nccl_tests:
        name, table = nccl_test(printed)
        shown += ["", name, *table.lines(width)]
    return [*shown, "", *verdicts(slow)]


def markdown(fabric: FabricMeasurement) -> str:
    """A section's text; the caller has the heading."""
    slow = slow_parts(fabric.links)
    parts = [markup.plain(described(fabric)), links(fabric, slow).markdown()]
    parts += [markup.plain(note) for note in left_out(fabric)]
    for reduced in fabric.all_reduces:
        parts += [markup.plain(title(reduced)), all_reduce(reduced).markdown()]
    for printed in fabric.nccl_tests:
        name, table = nccl_test(printed)
        parts += [markup.plain(name), table.markdown()]
    parts.append("\n".join(f"- {markup.plain(text)}" for text in verdicts(slow)))
    return "\n\n".join(parts)


def described(fabric: FabricMeasurement) -> str:
    ranks, nodes = len(fabric.nodes), len(set(fabric.nodes))
    mode = "pairs of a round together" if fabric.together else "one pair at a time"
    where = f"{ranks} ranks on {nodes} node{'s' if nodes > 1 else ''}"
    return one_line(f"{where}, {fabric.device} ({fabric.backend}), {mode}, {fabric.taken}")


def title(reduced: AllReduce) -> str:
    place = f"{reduced.ranks} ranks on {reduced.nodes} node{'s' if reduced.nodes > 1 else ''}"
    fitted = alpha_beta_model(reduced.points)
    rate = fitted.bytes_per_second
    bus = rate_words(None if rate is None else bus_factor(reduced.ranks) * rate)
    return f"All-reduce over {place}: latency {seconds_words(fitted.latency_seconds)}, bus bandwidth {bus}"


def links(fabric: FabricMeasurement, slow: Sequence[SlowPart]) -> Table:
    alone = len(set(fabric.nodes)) == 1
    named = [(link, [each for each in slow if concerns(each, link)]) for link in fabric.links]
    if len(named) > MOST_LINKS:
        named.sort(key=lambda each: (-len(each[1]), each[0].bytes_per_second or 0.0))
        named = named[:MOST_LINKS]
    rows = [
        (
            f"{link.ranks[0]} – {link.ranks[1]}",
            "" if alone else link.nodes[0] if link.same_node else " – ".join(link.nodes),
            seconds_words(link.latency.seconds),
            f"[{seconds_words(link.latency.low)}, {seconds_words(link.latency.high)}]",
            rate_words(link.bytes_per_second),
            "slow: " + ", ".join(sorted({each.figure for each in concerning})) if concerning else "",
        )
        for link, concerning in named
    ]
    header = ("ranks", "" if alone else "nodes", "latency", "95 % interval", "bandwidth", "")
    return Table(header, rows, frozenset({2, 3, 4}))


def all_reduce(reduced: AllReduce) -> Table:
    rows = [
        (
            bytes_words(point.bytes),
            seconds_words(point.seconds),
            f"[{seconds_words(point.low)}, {seconds_words(point.high)}]",
            rate_words(reduced.bus_bytes_per_second(point)),
        )
        for point in reduced.points
    ]
    return Table(("size", "time", "95 % interval", "bus bandwidth"), rows, frozenset({0, 1, 2, 3}))


def nccl_test(printed: Mapping[str, Any]) -> tuple[str, Table]:
    """What a program of nccl-tests printed of one node, under its own name."""
    rows = [
        (
            bytes_words(each["bytes"]),
            seconds_words(each["seconds"]),
            rate_words(each["bus_bytes_per_second"]),
        )
        for each in printed["sizes"]
    ]
    table = Table(("size", "time", "bus bandwidth"), rows, frozenset({0, 1, 2}))
    return one_line(f"{printed['program']} of nccl-tests on {printed['node']}"), table


def verdicts(slow: Sequence[SlowPart]) -> list[str]:
    return [f"Slow: {one_line(each.message)}." for each in slow] or [NOTHING_SLOW]


def concerns(slow: SlowPart, link: Link) -> bool:
    """Whether this verdict is about this link."""
    if slow.what == "link":
        return slow.names in (rank_pair(link), node_pair(link))
    ends = link.nodes if slow.what == "node" else rank_pair(link)
    return not (link.same_node and slow.what == "node") and slow.names[0] in ends


def left_out(fabric: FabricMeasurement) -> list[str]:
    count = len(fabric.links)
    if count <= MOST_LINKS:
        return []
    rates = [rate for link in fabric.links if (rate := link.bytes_per_second)]
    median = rate_words(statistics.median(rates)) if rates else "n/a"
    return [f"The slowest {MOST_LINKS} of {count} links; the median has {median}."]
