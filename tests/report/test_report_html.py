import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from sample_documents import HOSTILE, cpu, empty, h200, hostile, large, samples, single, trace

from trainmark.report.chart.model import Shade
from trainmark.report.format import page, templating
from trainmark.report.format.words import words
from trainmark.report.plots import plots
from trainmark.report.render import html
from trainmark.report.sections.group import by_series, headlines


class Page(HTMLParser):
    """The elements of a page, and whether any could reach the network."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.handlers, self.addresses = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self.addresses += [value for name, value in attrs if name in ("src", "href")]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_page_names_no_address_to_fetch(lang):
    assert Page(html.render(h200(), lang)).addresses == []


def test_hostile_text_makes_no_element_and_no_handler():
    page = Page(html.render(hostile()))
    assert page.tags.count("script") == 3
    assert "img" not in page.tags
    assert page.handlers == []


def test_hostile_text_is_shown_and_not_computed():
    text = html.render(hostile())
    assert "{{ 7*7 }}" in text
    assert "\\x1b[31m" in text
    assert not re.search("[\x1b\u202e\u2028]", text)


def test_the_embedded_figures_hold_no_bare_angle_bracket_or_ampersand():
    text = page.embedded({"text": HOSTILE})
    assert not re.search("[<>&\u2028]", text)
    assert json.loads(text)["text"] == HOSTILE


def test_the_policy_admits_the_three_scripts_and_no_inline_others():
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', html.render(h200()))[1]
    assert policy.count("sha256-") == 3
    assert "script-src &#39;unsafe-inline" not in policy
    assert policy.startswith("default-src &#39;none&#39;")


@pytest.mark.parametrize(
    ("document", "names"),
    [
        (h200(), {"throughput", "efficiency", "steps", "spread", "samples"}),
        (cpu(), {"throughput", "efficiency", "steps", "spread"}),
        (single(), {"steps", "spread", "samples"}),
        (empty(), set()),
    ],
    ids=["h200", "cpu", "single", "empty"],
)
def test_a_page_has_the_plots_its_data_can_fill(document, names):
    text = html.render(document)
    assert set(re.findall(r'<figure data-plot="(\w+)"', text)) == names


def test_the_ideal_line_is_one_device_times_the_count():
    group = by_series(h200().results)[0]
    chart = plots(h200(), words("en"))["throughput"].figures[0].views["Linear"]
    ideal, measured = chart.panels[0].marks[:2]
    assert ideal.dash and list(ideal.y) == pytest.approx(
        [group.results[0].throughput * count for count in (1, 2, 4, 8)]
    )
    assert list(measured.y) == [r.throughput for r in group.results]


def test_the_steps_before_and_after_the_window_are_shaded():
    trace = h200().traces[0]
    for chart in plots(h200(), words("en"))["steps"].figures[0].views.values():
        shades = [mark for mark in chart.panels[0].marks if isinstance(mark, Shade)]
        assert [(shade.start, shade.stop) for shade in shades] == [
            (0, trace.window_first),
            (trace.window_stop, 399),
        ]


def test_an_only_series_fills_the_headline_strip_and_several_share_it():
    assert [r.key.topology for _, r in headlines(by_series(cpu().results))] == ["1n1g", "1n2g"]
    assert [r.key.topology for _, r in headlines(by_series(h200().results))] == ["1n8g", "1n8g"]


def test_a_doubt_is_a_label_that_opens_its_sentence():
    text = html.render(h200())
    assert re.search(r'<details class="doubt"><summary>straggler</summary><p lang="en">Rank 5 ended', text)


def test_trials_of_many_cases_are_folded_away():
    text = html.render(large(cases=60, repeats=4))
    assert text.count('<details class="fold">') == 61
    assert '<details class="fold" open' not in text


def test_a_run_without_a_result_says_so():
    assert words("en")["no_results"] in html.render(empty()).replace("&#34;", '"')


@pytest.fixture
def page_at_home(tmp_path, monkeypatch):
    """A page by a new process whose home is a folder here."""

    def render(name: str) -> str:
        monkeypatch.setenv("TRAINMARK_HOME", str(tmp_path / name))
        templating.environment.cache_clear()
        return html.render(single())

    yield render
    templating.environment.cache_clear()


def test_compiled_templates_give_the_same_page(page_at_home, tmp_path):
    first = page_at_home("home")
    assert list((tmp_path / "home" / "templates").iterdir())
    assert page_at_home("home") == first


@pytest.mark.parametrize("file", ["home", "home/templates"])
def test_a_page_needs_no_folder_for_compiled_templates(file, page_at_home, tmp_path):
    """A file lies in its place."""
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).touch()
    assert "</html>" in page_at_home("home")


def test_a_page_of_twenty_cases_with_long_traces_and_eight_devices_is_under_a_megabyte():
    cases = large(cases=20, repeats=6)
    eight = [replace(r, key=replace(r.key, devices_per_node=8)) for r in cases.results]
    document = replace(
        cases,
        traces=tuple(trace(r, 5000) for r in cases.results),
        samples=tuple(series for r in eight for series in samples(r, 2000)),
    )
    assert len(html.render(document).encode()) < 1_000_000
