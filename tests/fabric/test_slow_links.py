"""What is slow is named once, by the smallest name that covers it; what is merely noisy is not."""

from __future__ import annotations

import re
import statistics
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from known_fabrics import SIZES, fabric, link

from trainmark.measure.fabric import Link, MessageTime, SlowPart, median_without, slow_parts

FOUR = dict.fromkeys("abcd", 1)


def named(parts: list[SlowPart]) -> set[tuple[str, tuple[str, ...], str]]:
    return {(slow.what, slow.names, slow.figure) for slow in parts}


def found_in(nodes, worse=None):
    return named(slow_parts(fabric(nodes, worse).links))


@pytest.mark.parametrize("nodes", [{"a": 2}, {"a": 8}, {"a": 1, "b": 1}, FOUR, {"a": 4, "b": 4}])
def test_in_an_even_fabric_nothing_is_slow(nodes):
    assert found_in(nodes) == set()


def test_links_inside_a_node_are_not_the_measure_of_those_between():
    assert found_in({"a": 2, "b": 2, "c": 2}) == set()


@given(st.sampled_from([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]))
def test_a_narrow_link_is_named_by_its_nodes(pair):
    names = tuple("abcd"[end] for end in pair)
    assert found_in(FOUR, {pair: (1.0, 0.5)}) == {("link", names, "bandwidth")}


def test_a_late_link_is_named_for_its_latency():
    assert found_in(FOUR, {(1, 3): (10.0, 1.0)}) == {("link", ("b", "d"), "latency")}


def test_a_link_at_four_fifths_is_not_slow():
    assert found_in(FOUR, {(1, 3): (1.2, 0.8)}) == set()


@pytest.mark.parametrize("count", [3, 4, 9])
def test_a_node_all_of_whose_links_are_slow_is_named_instead_of_them(count):
    nodes = dict.fromkeys("abcdefghi"[:count], 1)
    worse = {(0, other): (1.0, 0.5) for other in range(1, count)}
    assert found_in(nodes, worse) == {("node", ("a",), "bandwidth")}


def test_beside_a_slow_node_a_slow_link_elsewhere_is_still_named():
    worse = {(0, other): (1.0, 0.5) for other in range(1, 5)} | {(2, 3): (1.0, 0.4)}
    assert found_in(dict.fromkeys("abcde", 1), worse) == {
        ("node", ("a",), "bandwidth"),
        ("link", ("c", "d"), "bandwidth"),
    }


def test_a_rank_whose_own_adapter_is_slow_is_named_and_not_its_node():
    worse = {(1, other): (1.0, 0.4) for other in range(2, 6)}
    assert found_in({"a": 2, "b": 2, "c": 2}, worse) == {("rank", ("rank 1 on a",), "bandwidth")}


def test_a_slow_link_inside_a_node_is_named_by_its_ranks():
    assert found_in({"a": 4}, {(1, 2): (1.0, 0.5)}) == {("link", ("rank 1 on a", "rank 2 on a"), "bandwidth")}


def test_of_a_single_link_nobody_can_say_that_it_is_slow():
    assert found_in({"a": 1, "b": 1}, {(0, 1): (50.0, 0.01)}) == set()


def test_two_racks_are_not_a_slow_link():
    far = {(0, 2), (0, 3), (1, 2), (1, 3)}
    assert found_in(FOUR, dict.fromkeys(far, (1.0, 0.5))) == set()


def test_a_link_whose_interval_reaches_the_others_is_not_slow():
    even = fabric(FOUR)
    unsure = link((0, 1), ("a", "b"), 22e-6, 5.8e9, wide=0.6)
    assert slow_parts((unsure, *even.links[1:])) == []


def test_where_all_times_are_unsure_no_link_is_called_slow():
    unsure = [
        link((a, b), ("abcd"[a], "abcd"[b]), 22e-6, 11.6e9, wide=0.6) for a, b in combinations(range(4), 2)
    ]
    unsure[0] = link((0, 1), ("a", "b"), 22e-6, 5.8e9)
    assert slow_parts(unsure) == []


def test_a_link_too_slow_for_the_large_sizes_is_judged_by_the_others():
    even = fabric(FOUR, {(0, 1): (1.0, 0.01)})
    cut = replace(even.links[0], points=even.links[0].points[:5])
    assert ("link", ("a", "b"), "bandwidth") in named(slow_parts((cut, *even.links[1:])))


def test_a_link_whose_time_does_not_grow_has_no_bandwidth_to_judge():
    even = fabric(FOUR)
    flat = replace(even.links[0], points=tuple(MessageTime(size, 22e-6, 21e-6, 23e-6) for size in SIZES))
    assert slow_parts((flat, *even.links[1:])) == []


def test_the_message_says_by_how_much():
    (slow,) = slow_parts(fabric(FOUR, {(1, 3): (10.0, 1.0)}).links)
    assert slow.times == pytest.approx(10, rel=0.1)
    assert slow.message.startswith("link b – d has ")
    assert " times the latency of comparable links: 2" in slow.message


@given(st.lists(st.floats(0.001, 1000), min_size=2, max_size=30), st.data())
def test_a_median_without_one_value_is_the_median_of_the_others(values, data):
    gone = data.draw(st.integers(0, len(values) - 1))
    others = values[:gone] + values[gone + 1 :]
    assert median_without(sorted(values), values[gone]) == pytest.approx(statistics.median(others))


# Microseconds [median, low, high] by size, of four hosts in network namespaces on two busy cores (load 15),
# where one direction of host1 – host3 was narrowed to 2 Gbit/s.
BUSY = {
    (0, 1): "8:178[79,796] 1024:465[297,735] 16384:300[242,729] 131072:500[314,698] 1048576:729[455,1532]"
    " 8388608:6548[4411,8922]",
    (0, 2): "8:788[185,1223] 1024:1123[986,1556] 16384:1294[1154,1452] 131072:1247[1052,1479]"
    " 1048576:1375[972,1798] 8388608:3076[2886,6472]",
    (0, 3): "8:5016[1038,6459] 1024:1980[1212,10021] 16384:1305[1066,5085] 131072:1235[1032,4932]"
    " 1048576:1573[1335,2006] 8388608:2947[2907,4223]",
    (1, 2): "8:1473[1033,1938] 1024:1714[1255,1979] 16384:1632[1082,1989] 131072:1197[559,1984]"
    " 1048576:1698[973,1792] 8388608:4751[2905,11452]",
    (1, 3): "8:976[426,1716] 1024:882[45,1699] 16384:1139[1018,1617] 131072:1242[1113,1534]"
    " 1048576:3305[2562,3673] 8388608:20333[19338,26775]",
    (2, 3): "8:93[65,245] 1024:65[34,1848] 16384:67[53,1939] 131072:138[97,1900] 1048576:1226[960,1813]"
    " 8388608:10713[7878,18482]",
}


def test_on_a_busy_machine_the_narrowed_link_is_named_and_no_other():
    links = [
        Link(
            pair,
            (f"host{pair[0]}", f"host{pair[1]}"),
            tuple(
                MessageTime(int(size), *(int(micro) * 1e-6 for micro in micros))
                for size, *micros in re.findall(r"(\d+):(\d+)\[(\d+),(\d+)\]", times)
            ),
        )
        for pair, times in BUSY.items()
    ]
    assert named(slow_parts(links)) == {("link", ("host1", "host3"), "bandwidth")}
