"""The map and the tables: every link in its place, the slow one framed, no name able to break the page."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from known_fabrics import fabric

from trainmark.pages import fabric_map
from trainmark.pages.fabric import MOST_LINKS, fabric_blocks, fabric_page
from trainmark.pages.fabric_map import fill, grid, ink_on
from trainmark.view import html, terminal
from trainmark.view import markdown as markdown_view

SVG = "{http://www.w3.org/2000/svg}"
FOUR = dict.fromkeys("abcd", 1)
SLOW = {(1, 3): (1.0, 0.5)}


def page_of(fabric):
    return html.render(fabric_page(fabric))


def lines(fabric):
    return terminal.lines(fabric_page(fabric).blocks)


def markdown(fabric):
    return markdown_view.fragment(list(fabric_blocks(fabric)))


def places(svg: str) -> dict[str, ElementTree.Element]:
    """The groups of the map by what they tell of themselves."""
    root = ElementTree.fromstring(svg)
    return {group.findtext(f"{SVG}title", ""): group for group in root.iter(f"{SVG}g")}


def framed(svg: str) -> list[str]:
    return [title for title, group in places(svg).items() if group.find(f"{SVG}rect").get("stroke")]


def test_each_pair_of_nodes_has_a_place():
    assert {title.partition(":")[0] for title in places(fabric_map.render(fabric(FOUR)))} == {
        "a – b", "a – c", "a – d", "b – c", "b – d", "c – d",
    }  # fmt: skip


def test_links_inside_a_node_are_on_the_diagonal():
    shown = grid(fabric({"a": 2, "b": 2}))
    assert set(shown.cells) == {(0, 0), (1, 0), (1, 1)}
    assert shown.cells[0, 0].bytes_per_second == pytest.approx(20e9, rel=0.1)
    assert shown.cells[1, 0].share == pytest.approx(1)


def test_one_node_is_shown_rank_by_rank():
    shown = grid(fabric({"a": 3}))
    assert (shown.title, shown.names) == ("Bandwidth and latency between ranks", ("0", "1", "2"))
    assert set(shown.cells) == {(1, 0), (2, 0), (2, 1)}


def test_the_slow_link_and_no_other_is_framed():
    (title,) = framed(fabric_map.render(fabric(FOUR, SLOW)))
    assert title.startswith("b – d: ")
    assert title.endswith("slow: bandwidth")


def test_of_a_slow_node_every_link_is_framed():
    worse = {(0, other): (1.0, 0.5) for other in (1, 2, 3)}
    assert len(framed(fabric_map.render(fabric(FOUR, worse)))) == 3


def test_in_an_even_fabric_nothing_is_framed():
    assert framed(fabric_map.render(fabric(FOUR))) == []


@pytest.mark.parametrize(("count", "numbers"), [(16, True), (17, False)])
def test_numbers_stand_in_the_cells_of_up_to_sixteen_nodes(count, numbers):
    svg = fabric_map.render(fabric({f"n{place}": 1 for place in range(count)}))
    assert any(group.find(f"{SVG}text") is not None for group in places(svg).values()) == numbers
    assert "Bandwidth beside the median" in svg


def test_a_map_of_many_nodes_says_which_is_slow():
    worse = {(min(7, other), max(7, other)): (1.0, 0.5) for other in range(60) if other != 7}
    svg = fabric_map.render(fabric({f"n{place}": 1 for place in range(60)}, worse))
    assert "all links of n7 have 50 % of the bandwidth of comparable links" in svg
    assert len(framed(svg)) == 59


@given(st.text(min_size=1, max_size=40), st.text(min_size=1, max_size=40))
def test_whatever_a_node_is_called_the_map_is_well_formed(one, other):
    drawn = fabric({"a": 1, "b": 1})
    named = replace(
        drawn, nodes=(one, other), links=tuple(replace(link, nodes=(one, other)) for link in drawn.links)
    )
    ElementTree.fromstring(fabric_map.render(named))
    assert all("\n" not in line for line in lines(named))


def test_a_page_runs_its_own_scripts_alone_and_fetches_nothing():
    page = page_of(fabric({"<script>alert(1)</script>": 1, "b": 1}))
    assert page.count("<script") == 3
    assert "default-src &#39;none&#39;" in page


def test_the_page_holds_map_links_and_all_reduce():
    page = page_of(fabric(FOUR, SLOW))
    assert "<svg" in page
    assert "slow: bandwidth" in page
    assert "All-reduce over 4 ranks on 4 nodes" in page


def test_the_page_says_what_is_slow_first_and_under_what_it_holds():
    page = page_of(fabric(FOUR, SLOW))
    assert page.index("Slow: link b – d has ") < page.index("<main>")
    assert "One pair talked at a time" in page and "below 70 % of the bandwidth" in page


def test_the_terminal_shows_every_link_and_the_verdict():
    shown = lines(fabric(FOUR, SLOW))
    assert sum(bool(re.match(r"\d – \d ", line)) for line in shown) == 6
    assert shown[-1].startswith("Slow: link b – d has ")
    assert lines(fabric(FOUR))[-1] == "No link is slow beside comparable ones."


def test_of_many_links_the_terminal_shows_the_slowest_and_says_so():
    shown = lines(fabric({"a": 9}, {(7, 8): (1.0, 0.5)}))
    assert f"The slowest {MOST_LINKS} of 36 links; the median has" in "\n".join(shown)
    assert sum(bool(re.match(r"\d – \d ", line)) for line in shown) == MOST_LINKS
    assert any(line.startswith("7 – 8 ") for line in shown)


def test_the_markdown_is_made_of_tables():
    text = markdown(fabric({"a|b": 1, "c": 1, "d": 1}))
    assert "a\\|b – c" in text
    assert text.count("| --- | --- |") + text.count("| ---: | ---: |") >= 2


@given(st.floats(1e-6, 1e6))
def test_a_colour_is_a_colour_and_its_ink_can_be_read_on_it(share):
    colour = fill(share)
    assert re.fullmatch("#[0-9a-f]{6}", colour)
    assert _contrast(colour, ink_on(colour)) >= 4


def test_the_slower_the_redder_and_the_faster_the_bluer():
    reds = [int(fill(share)[1:3], 16) - int(fill(share)[5:7], 16) for share in (0.5, 0.7, 1.0, 1.5, 2.0)]
    assert reds == sorted(reds, reverse=True)


def test_what_has_no_bandwidth_is_grey():
    assert fill(None) == "#e3e1da"


def _contrast(one: str, other: str) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
