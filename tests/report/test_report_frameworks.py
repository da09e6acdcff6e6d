"""Frameworks beside each other, in every form of the report."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from run_pages import as_html, as_lines, as_markdown, plots
from sample_documents import GPU, HOSTILE, h200, result, six

from trainmark.logs.ledger import load, standing
from trainmark.pages.run.csv_table import run_csv
from trainmark.pages.run.frameworks import BEST_PUBLISHED, COMPARED, tables_of
from trainmark.pages.run.record import run_json
from trainmark.store.report import NOT_CHECKED, Conformance, conformance_in, report_of
from trainmark.view.chart.model import Bars, Line

sys.path.insert(0, str(Path(__file__).parents[1] / "store"))

from fabricated_runs import fabricate

V100 = replace(GPU, device="Tesla V100-SXM2-16GB", layout="NHWC")


def published():
    """Two frameworks of which the ledger has figures on this device, and one of which it has none."""
    results = tuple(
        result(replace(V100, framework=name), rate)
        for name, rate in (("pytorch", 800.0), ("mxnet", 1300.0), ("homemade", 1.0))
    )
    entries = load()
    placed = {
        r.key: comparison
        for r in results
        if (
            comparison := standing(
                r.key, r.throughput, [e for e in entries if e.row.framework == r.key.framework]
            )
        )
    }
    return replace(h200(), results=results, standings=placed)


def test_a_run_of_one_framework_has_no_comparison_of_them():
    assert tables_of(h200()) == ()
    assert COMPARED not in as_markdown(h200()) + as_html(h200())


def test_a_row_says_all_that_the_table_promises():
    text = as_markdown(six())
    row = next(
        line for line in text.splitlines() if line.startswith("|  | tensorflow 2.19.0") and "44.76" in line
    )
    cells = [cell.strip() for cell in row.split(" | ")]
    assert cells[1] == "tensorflow 2.19.0 · NHWC" and cells[2].startswith("44.76 [")
    assert re.fullmatch(r"77\.\d % \[[\d.]+, [\d.]+\]", cells[4])
    assert cells[5].startswith("×1.8")
    assert cells[6:10] == ["1.2", "11.7 s", "4", "conformant |"]


@pytest.mark.parametrize(
    ("lang", "marks"),
    [("en", {"conformant", "not conformant", "not checked"}), ("zh", {"一致", "不一致", "未检查"})],
)
def test_every_mark_of_conformance_is_on_the_page_in_its_language(lang, marks):
    labels = re.findall(r'class="mark \w+">([^<]+)<', as_html(six(), lang))
    assert set(labels) == marks


def test_what_differs_is_said_once_for_a_framework_that_is_not_conformant():
    for text in (as_markdown(six()), as_html(six()), "\n".join(as_lines(six()))):
        assert text.count("paddle is not conformant: the loss after 5 steps is 6.912") == 1


def test_the_terminal_has_a_line_for_each_framework_at_each_topology():
    lines = as_lines(six())
    begin = lines.index("Frameworks")
    (first, second) = (place for place, line in enumerate(lines) if line.startswith(("  1n1g", "  1n2g")))
    assert lines[begin + 1] == "resnet50 fp32 b4" and "fastest" in lines[first]
    assert second - first == 6 and lines[second + 6] == ""


def test_the_best_published_figure_of_the_same_framework_stands_beside_ours():
    rows = {row.name: row for row in tables_of(published())[0].rows}
    assert rows["mxnet"].published.best.row.framework == "mxnet"
    assert rows["homemade"].published is None
    assert rows["mxnet"].published.best.source in as_markdown(published())


def test_without_any_published_figure_there_is_no_column_for_them():
    assert BEST_PUBLISHED not in as_markdown(six())


def test_json_and_csv_have_the_share_the_mark_and_the_steps_to_settle():
    tree = json.loads(run_json(six()))["results"]
    rows = list(csv.DictReader(io.StringIO(run_csv(six()))))
    paddle = next(i for i, r in enumerate(tree) if r["framework"] == "paddle")
    assert tree[paddle]["conformance"]["conformant"] is False
    assert rows[paddle]["conformance_conformant"] == "False"
    assert rows[paddle]["conformance_differs"].endswith("BatchNorm momentum")
    assert float(rows[paddle]["share_of_best_value"]) == tree[paddle]["share_of_best"]["value"] < 1
    assert int(rows[paddle]["settling_steps"]) == tree[paddle]["settling_steps"] == 3


def test_the_published_figure_is_in_json_and_csv_too():
    tree = json.loads(run_json(published()))["results"]
    rows = list(csv.DictReader(io.StringIO(run_csv(published()))))
    assert tree[1]["published_of_framework"]["source"] == rows[1]["published_of_framework_source"] != ""
    assert tree[2]["published_of_framework"] is None


def marks_of(drawn):
    return drawn["framework_bars"].figures[0].views[""].panels[0].marks


def test_bars_stand_for_the_throughput_and_their_lines_for_the_interval():
    document = six()
    (figure,) = plots(document)["framework_bars"].figures
    chart, made = figure.views[""], document.results[0]
    fastest, whiskers = chart.panels[0].marks[:2]
    assert [name for _, name in chart.x.ticks] == ["1n1g", "1n2g"]
    assert (fastest.name, fastest.y[0]) == ("pytorch", made.throughput)
    assert (whiskers.low[0], whiskers.high[0]) == (made.interval.low, made.interval.high)


def test_a_framework_has_one_colour_in_bars_lines_and_legend():
    drawn = plots(six())
    legend = drawn["framework_bars"].legend
    lines = drawn["framework_scaling"].figures[0].views["Linear"].panels[0].marks
    bars = [mark for mark in marks_of(drawn) if isinstance(mark, Bars)]
    assert len(bars) == len(legend) == 6
    for bar in bars:
        line = next(mark for mark in lines if isinstance(mark, Line) and mark.name == bar.name)
        assert bar.tone == line.tone == f"t{legend.index(bar.name)}"
        assert bar.series == line.series


def test_scaling_is_drawn_once_where_every_series_is_compared():
    assert {"framework_bars", "framework_scaling"} <= set(plots(six()))
    assert "throughput" not in plots(six())


def test_a_series_beside_the_comparison_keeps_the_plot_of_all_series():
    alone = tuple(
        result(replace(GPU, devices_per_node=devices), 100.0 * devices, 100.0) for devices in (1, 2)
    )
    document = replace(six(), results=(*six().results, *alone))
    assert {"framework_scaling", "throughput"} <= set(plots(document))


def test_two_layouts_of_one_framework_are_two_bars_of_one_colour():
    first, second = six().results[0], six().results[2]
    other = replace(first, key=replace(first.key, layout="NHWC"))
    document = replace(six(), results=(first, other, second))
    drawn = [mark for mark in marks_of(plots(document)) if isinstance(mark, Bars)]
    assert [bar.name for bar in drawn] == ["pytorch 2.13.0 NCHW", "pytorch 2.13.0 NHWC", "jax"]
    assert drawn[0].tone == drawn[1].tone
    assert drawn[1].opacity < drawn[0].opacity


def test_hostile_words_of_a_framework_stay_words():
    first, second = six().results[0], six().results[2]
    bad = replace(first, key=replace(first.key, framework=HOSTILE, framework_version=HOSTILE))
    document = replace(
        six(), results=(bad, second), conformance={bad.key: Conformance(False, (HOSTILE,), HOSTILE)}
    )
    assert "<img" not in as_html(document)
    assert "<img" not in re.sub(r"(?ms)^(`{3,}).*?^\1$", "", as_markdown(document))
    assert not re.search("[\x1b\u202e]", "\n".join(as_lines(document)) + run_csv(document))


def test_a_report_marks_a_framework_as_the_run_noted_it(tmp_path):
    run = fabricate(tmp_path, "a")
    run.keep_facts({"pytorch-fp32-b32-1n1g": {"conformance": {"conformant": True, "differs": []}}})
    (mark,) = report_of(run).conformance.values()
    assert mark.conformant


@pytest.mark.parametrize(
    "facts",
    [None, {}, [], {"conformance": None}, {"conformance": {}}, {"conformance": {"conformant": None}},
     {"conformance": {"conformant": "yes"}}, {"conformance": [True]}],
    ids=repr,
)  # fmt: skip
def test_what_the_facts_do_not_say_was_not_checked(facts):
    assert conformance_in(facts) == NOT_CHECKED


def test_the_mark_is_read_from_the_facts_of_a_case():
    facts = {"conformance": {"conformant": False, "differs": ["the loss"], "checked": "2026-01-31"}}
    assert conformance_in(facts) == Conformance(False, ("the loss",), "2026-01-31")
