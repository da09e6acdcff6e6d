"""Time to train in every layout."""

import csv
import io
import json
from dataclasses import replace

import pytest
from run_pages import as_html, as_lines, as_markdown, in_language, plots
from sample_documents import h200
from trained_documents import TARGET, trained

from trainmark.pages.run.csv_table import run_csv
from trainmark.pages.run.record import run_json
from trainmark.view.chart.model import Dots, Rule
from trainmark.workloads import registry


def training_plot(document):
    return plots(document)["training"]


def test_a_run_without_a_training_has_no_word_of_it():
    for page in (as_html(h200()), as_markdown(h200()), "\n".join(as_lines(h200()))):
        assert "Time to train" not in page


def test_every_seed_of_a_case_is_drawn_over_time_and_over_steps():
    (one, four) = training_plot(trained()).figures
    assert one.label.endswith("1n1g")
    for view in ("Time", "Steps"):
        marks = [mark for panel in four.views[view].panels for mark in panel.marks]
        names = {mark.name for mark in marks if isinstance(mark, Dots) or getattr(mark, "tip", "")}
        assert names == {f"seed {seed}" for seed in range(1, 6)}


def test_the_views_are_the_two_axes():
    figure = training_plot(trained()).figures[0]
    assert {name: chart.x.title for name, chart in figure.views.items()} == {
        "Time": "minutes since the run started",
        "Steps": "step",
    }


def test_the_target_is_a_line_and_each_crossing_a_ring_on_its_evaluation():
    document = trained()
    figure = training_plot(document).figures[0]
    marks = figure.views["Steps"].panels[0].marks
    assert [mark.y for mark in marks if isinstance(mark, Rule)] == [100 * TARGET]
    rings = [mark for mark in marks if isinstance(mark, Dots) and mark.shape == "ring"]
    crossings = [curve.crossing for curve in document.curves[:5]]
    assert [ring.x[0] for ring in rings] == [float(crossing.step) for crossing in crossings]


def test_a_loss_is_drawn_alone_above_the_lowest_possible():
    document = trained()
    metrics = registry.find("gpt2").workload.metrics
    evaluations = tuple(
        replace(evaluation, scores=(("loss", 4.0 - 0.01 * evaluation.epoch), ("perplexity", 50.0)))
        for evaluation in document.curves[0].evaluations
    )
    curve = replace(
        document.curves[0], metrics=metrics, evaluations=evaluations, crossing=None, target=None, floor=3.5
    )
    panel = training_plot(replace(document, curves=(curve,))).figures[0].views["Steps"].panels[0]
    (rule,) = (mark for mark in panel.marks if isinstance(mark, Rule))
    assert (rule.y, rule.name) == (3.5, "lowest possible 3.5000")
    assert max(value for mark in panel.marks if isinstance(mark, Dots) for value in mark.y) == 4.0
    assert 3.4 < panel.y.low < 3.5


def test_a_target_that_was_missed_has_its_line_and_no_ring():
    figure = training_plot(trained(target=0.95)).figures[0]
    marks = figure.views["Time"].panels[0].marks
    assert any(isinstance(mark, Rule) for mark in marks)
    assert not [mark for mark in marks if isinstance(mark, Dots) and mark.shape == "ring"]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_pages_have_both_clocks_both_rates_and_both_speedups(lang):
    for page in (as_html(trained(), lang), as_markdown(trained(), lang)):
        for name in ("AI-Rank's clock", "speedup by time", "speedup by throughput", "of synthetic"):
            assert in_language(name, lang) in page.replace("&#39;", "'")
        assert in_language("{unit} with evaluation", lang).format(unit="images/s") in page
        assert in_language("best {metric}", lang).format(metric="top-1") in page
        assert in_language("{metric} there", lang).format(metric="top-5") in page


def test_the_headline_of_a_training_is_its_time():
    page = as_html(trained())
    assert "to top-1 80 %</span></div>" in page


def test_the_terminal_has_a_line_for_each_training():
    lines = as_lines(trained())
    begin = lines.index("Time to train (top1=0.8)")
    assert lines[begin + 1].split()[:3] == ["case", "time2train", "reached"]
    assert lines[begin + 2].startswith("pytorch amp/dynamic b256 1n1g")


def test_a_training_that_misses_its_target_shows_no_time():
    lines = "\n".join(as_lines(trained(target=0.95)))
    assert "0/5" in lines
    assert "! target-not-reached" in lines


def test_json_and_csv_carry_the_same_time_and_speedup():
    document = trained()
    finish = json.loads(run_json(document))["results"][1]["finish"]
    row = list(csv.DictReader(io.StringIO(run_csv(document))))[1]
    assert float(row["finish_time2train"]) == finish["time2train"]
    assert float(row["finish_speedup_value"]) == finish["speedup"]["value"]
    assert finish["low"] <= finish["time2train"] <= finish["high"]
