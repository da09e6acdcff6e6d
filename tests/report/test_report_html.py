import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from run_pages import as_html, plots
from sample_documents import (
    GPU,
    HOSTILE,
    cpu,
    empty,
    h200,
    hostile,
    large,
    result,
    samples,
    single,
    six,
    trace,
)

from trainmark.pages import number
from trainmark.pages.label import by_series, headlines
from trainmark.view import frame as page
from trainmark.view import html
from trainmark.view.chart.model import Shade


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
    assert Page(as_html(h200(), lang)).addresses == []


def test_hostile_text_makes_no_element_and_no_handler():
    page = Page(as_html(hostile()))
    assert page.tags.count("script") == 3
    assert "img" not in page.tags
    assert page.handlers == []


def test_hostile_text_is_shown_and_not_computed():
    text = as_html(hostile())
    assert "{{ 7*7 }}" in text
    assert "\\x1b[31m" in text
    assert not re.search("[\x1b\u202e\u2028]", text)


def test_the_embedded_figures_hold_no_bare_angle_bracket_or_ampersand():
    text = page.embedded({"text": HOSTILE})
    assert not re.search("[<>&\u2028]", text)
    assert json.loads(text)["text"] == HOSTILE


def test_the_policy_admits_the_three_scripts_and_no_inline_others():
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', as_html(h200()))[1]
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
    text = as_html(document)
    assert set(re.findall(r'<figure data-plot="(\w+)"', text)) == names


def test_the_ideal_line_is_one_device_times_the_count():
    group = by_series(h200().results)[0]
    chart = plots(h200())["throughput"].figures[0].views["Linear"]
    ideal, measured = chart.panels[0].marks[:2]
    assert ideal.dash and list(ideal.y) == pytest.approx(
        [group.results[0].throughput * count for count in (1, 2, 4, 8)]
    )
    assert list(measured.y) == [r.throughput for r in group.results]


def test_the_steps_before_and_after_the_window_are_shaded():
    trace = h200().traces[0]
    for chart in plots(h200())["steps"].figures[0].views.values():
        shades = [mark for mark in chart.panels[0].marks if isinstance(mark, Shade)]
        assert [(shade.start, shade.stop) for shade in shades] == [
            (0, trace.window_first),
            (trace.window_stop, 399),
        ]


def test_an_only_series_fills_the_headline_strip_and_several_share_it():
    assert [r.key.topology for _, r in headlines(by_series(cpu().results))] == ["1n1g", "1n2g"]
    assert [r.key.topology for _, r in headlines(by_series(h200().results))] == ["1n8g", "1n8g"]


def test_a_doubt_is_one_label_that_opens_its_sentence():
    text = as_html(six())
    (label,) = re.findall(
        r'<details class="doubt is-caution"><summary><b>1</b> straggler</summary>(.*?)<', text
    )
    assert "Rank 5 (gpu-07) ends its steps later" in text
    assert label == ""
    assert text.count('class="mark-of is-caution" title="straggler">1<') == 4  # two cases, in two tables


def test_the_page_begins_with_the_subject_the_figure_and_the_verdict():
    text = as_html(single())
    figure = f'<div class="figure">{number.throughput(single().results[0].throughput)} '
    heading = re.sub("<[^>]+>", "", re.search("<h1>.*</h1>", text)[0])
    assert heading == "ResNet-50 v1.5 at 224², PyTorch 2.8 AMP, batch 256, 1 × H200"
    parts = ["<h1>", figure]
    parts += ['<p class="verdict is-reliable">Reliable to ±', '<section class="cases"', "<figure data-plot"]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_the_plot_of_the_devices_stands_right_after_the_table():
    text = as_html(h200())
    assert re.search(r"</table></div>\s*<p class=.note shared.*?data-plot=.throughput", text, re.S)
    assert text.index('data-plot="throughput"') < text.index('data-plot="steps"')


def test_headlines_that_leave_results_out_say_so():
    assert "2 of 8 results" in as_html(h200())
    assert 'class="quiet not-all"' not in as_html(cpu())


def test_one_device_alone_has_no_speedup():
    alone = result(GPU, 100.0, 100.0)
    text = as_html(replace(single(), results=(alone,)))
    assert "×1.00" not in text
    assert "speedup" not in re.search(r"<thead>.*?</thead>", text, re.S)[0]


def test_missing_facts_are_folded_into_one_line():
    text = as_html(single())
    assert text.count("not found") == 1
    assert re.search(
        r"2 facts were not found</summary><div>\s*<p class=\"note\">Libraries dali, Container<", text
    )


def test_samples_of_the_whole_host_are_called_so():
    series = replace(single().samples[0], device="node1/cpu")
    text = as_html(replace(single(), samples=(series,)))
    assert "node1/cpu (host-wide)" in text
    assert re.search(r"node1/cpu(?! \(host-wide\))", text) is None


def test_in_print_every_fold_is_open():
    assert (
        "details::details-content { content-visibility: visible"
        in as_html(single()).partition("@media print")[2]
    )


def test_trials_of_many_cases_are_folded_away():
    text = as_html(large(cases=60, repeats=4))
    assert text.count('<details class="fold">') == 63  # with the suite, the missing and the published
    assert '<details class="fold" open' not in text


def test_a_run_without_a_result_says_so():
    assert '<p class="verdict is-no-figure">There is no figure' in as_html(empty())


@pytest.fixture
def page_at_home(tmp_path, monkeypatch):
    """A page by a new process whose home is a folder here."""

    def render(name: str) -> str:
        monkeypatch.setenv("TRAINMARK_HOME", str(tmp_path / name))
        html.environment.cache_clear()
        return as_html(single())

    yield render
    html.environment.cache_clear()


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
    assert len(as_html(document).encode()) < 1_000_000
