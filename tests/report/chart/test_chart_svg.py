import re
from xml.etree import ElementTree

import pytest

from trainmark.view.chart import svg
from trainmark.view.chart.axis import columns, counts, linear, rows
from trainmark.view.chart.marks import extremes, straightened
from trainmark.view.chart.model import (
    Band,
    Bars,
    Chart,
    Dots,
    Label,
    Line,
    Panel,
    Rule,
    Shade,
    Whiskers,
)

HOSTILE = '</svg><script>alert(1)</script>"& \x1b[31m'


def drawn(*marks, x=None, y=None, height=100):
    panel = Panel(y or linear([], bounds=(0, 10)), marks, height)
    return ElementTree.fromstring(svg.render(Chart(x or linear([], bounds=(0, 4)), [panel]), "a chart"))


def of(root, name):
    return root.findall(f".//g/{name}")


def test_a_dot_stands_where_its_axes_say_and_tells_its_text():
    (dot,) = of(drawn(Dots(x=[1], y=[7.5], texts=["7.5 images/s"], name="pytorch")), "circle")
    assert (dot.get("cx"), dot.get("cy")) == ("25%", "25")
    assert dot.find("title").text == "pytorch: 7.5 images/s"


def test_bars_stand_on_zero():
    (bar,) = of(drawn(Bars(x=[0], y=[4], texts=["4"], width=0.5), x=columns(["a", "b"])), "rect")
    assert (bar.get("y"), bar.get("height")) == ("60", "40")
    assert (bar.get("x"), bar.get("width")) == ("12.50%", "25.00%")


def test_an_interval_spans_its_bounds_upright_and_flat():
    (upright,) = (e for e in of(drawn(Whiskers(at=[2], low=[2], high=[6])), "line") if e.get("stroke-width"))
    assert (upright.get("x1"), upright.get("y1"), upright.get("y2")) == ("50%", "80", "40")
    across = drawn(Whiskers(at=[0], low=[1], high=[3], flat=True), y=rows(["a"]))
    (flat,) = (e for e in of(across, "line") if e.get("stroke-width"))
    assert (flat.get("x1"), flat.get("x2"), flat.get("y1")) == ("25%", "75%", "50")


def test_a_dot_without_a_place_takes_its_text_and_its_link_with_it():
    dots = Dots(x=[1, None, 3], y=[5, 5, 5], texts=["one", "two", HOSTILE], links=["/a", "/b\n", "/c"])
    links = of(drawn(dots), "a")
    assert [link.get("href") for link in links] == ["/a", "/c"]
    assert [link.find(".//title").text for link in links] == [
        "one",
        '</svg><script>alert(1)</script>"& \\x1b[31m',
    ]


def test_a_missing_value_breaks_the_line():
    path = drawn(Line(x=[0, 1, 2, 3], y=[1, 2, None, 3])).find(".//path").get("d")
    assert path.count("M") == 2


def test_a_value_outside_the_axis_is_drawn_beyond_the_edge_and_not_inside():
    path = drawn(Line(x=[0, 1], y=[5, 1000])).find(".//path").get("d")
    assert path == "M0 100l500-500"
    assert not of(drawn(Dots(x=[1], y=[1000], texts=["far"])), "circle")


def test_an_axis_that_does_not_begin_at_zero_says_so():
    text = "".join(drawn(y=linear([], "step time (ms)", bounds=(38.25, 44))).itertext())
    assert "step time (ms), axis begins at 38.2, not at 0" in text
    assert "begins" not in "".join(drawn().itertext())


def test_the_chart_is_described_to_who_cannot_see_it():
    root = drawn(Dots(x=[1], y=[2], texts=["1n1g: 2"], name="jax"), x=counts([1, 2], "devices")).find("svg")
    assert (root.get("role"), root.get("aria-label")) == ("img", "a chart")
    assert root.find("desc").text == "devices. jax: 1n1g: 2"


def test_a_series_that_is_hidden_at_first_is_marked_and_named():
    group = drawn(Line(series="3", shown=False, x=[0, 1], y=[1, 2])).find(".//g[@data-series]")
    assert (group.get("data-series"), group.get("class")) == ("3", "t0 off")


def test_text_from_outside_stays_text():
    root = drawn(
        Dots(x=[1], y=[1], texts=[HOSTILE], name=HOSTILE),
        Line(x=[1, 2], y=[1, 2], name=HOSTILE, tip=HOSTILE),
        Rule(y=1, name=HOSTILE),
        Label(x=1, y=1, text=HOSTILE),
        x=columns([HOSTILE]),
        y=rows([HOSTILE, HOSTILE]),
    )
    assert not root.findall(".//script")


def test_a_chart_file_is_one_svg_with_its_own_colours():
    marks = (Band(x=[1, 2], low=[1, 1], high=[2, 2]), Shade("shade", start=0, stop=1), Rule("muted", y=1))
    chart = Chart(linear([], bounds=(0, 2)), [Panel(linear([2.0]), marks)])
    root = ElementTree.fromstring(svg.sheet([("a", chart)] * 3, [("t0", "pytorch")], columns=3))
    assert len(root.findall("{*}svg")) == 3
    assert "var(" not in ElementTree.tostring(root, encoding="unicode")


def test_thinning_keeps_the_ends_and_every_spike():
    values = [1.0] * 10_000
    values[4321], values[7001] = 9.0, -9.0
    chosen = extremes(values, 100)
    assert {0, 4321, 7001, 9_999} <= set(chosen)
    assert len(chosen) <= 202
    assert chosen == sorted(chosen)


def test_a_short_series_is_not_thinned():
    assert extremes([3.0, 1.0, 2.0], 100) == [0, 1, 2]


@pytest.mark.parametrize(
    ("points", "left"),
    [
        ([(0, 5), (1, 5), (2, 5), (3, 5)], [(0, 5), (3, 5)]),
        ([(0, 5), (0, 7), (0, 9)], [(0, 5), (0, 9)]),
        ([(0, 5), (0, 9), (0, 7)], [(0, 5), (0, 9), (0, 7)]),
        ([(0, 5), (0, 5), (1, 6)], [(0, 5), (1, 6)]),
    ],
)
def test_level_and_upright_stretches_are_two_points(points, left):
    assert straightened(points) == left


def test_a_line_of_many_thousand_points_takes_a_few_kilobytes():
    chart = Chart(
        linear([], bounds=(0, 50_000)),
        [Panel(linear([1.0]), [Line(x=range(50_000), y=[(i * 7919 % 1000) / 1000 for i in range(50_000)])])],
    )
    text = svg.render(chart, "steps")
    assert len(text) < 10_000
    assert len(re.findall(r"-?\d+", re.search(r' d="([^"]*)"', text)[1])) <= 2 * 802
