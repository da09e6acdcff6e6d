"""Scaling, and where the time goes, in every layout."""

import csv
import io
import json
import re
from dataclasses import replace

import pytest
from run_pages import as_html, as_markdown, in_language
from sample_documents import HOSTILE, cluster, h200, single, six

from trainmark.pages.run.csv_table import run_csv
from trainmark.pages.run.record import run_json
from trainmark.pages.run.scaling import MOST_NODES, case_times, scaling_section
from trainmark.view.blocks import Bar, Section, Table, plain_text
from trainmark.workloads import registry

SILENT = (
    "{frameworks}: the ranks do not tell working from waiting, so it cannot be said where their time goes or"
    " which of them holds the others back."
)


def hostile_nodes():
    """A cluster whose hosts have names that would be markup."""
    document = cluster()
    results = []
    for result in document.results:
        breakdown = result.breakdown
        ranks = tuple(replace(rank, node=f"{HOSTILE}{rank.node}") for rank in breakdown.ranks)
        slow = tuple(replace(straggler, node=HOSTILE) for straggler in result.stragglers)
        results.append(replace(result, breakdown=replace(breakdown, ranks=ranks), stragglers=slow))
    return replace(document, results=tuple(results))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_both_kinds_of_scaling_stand_in_both_pages(lang):
    page, text = as_html(cluster(), lang), as_markdown(cluster(), lang)
    for kind in (in_language(name, lang) for name in ("Weak scaling", "Strong scaling")):
        assert kind in page and f"### {kind}" in text
    time = in_language("Where the time goes", lang)
    assert time in page and f"## {time}" in text


def test_a_slow_node_is_named_with_its_cost_in_both_pages():
    assert "node node2, −11.2 %" in as_html(cluster())
    assert "node node2, −11.2 %" in as_markdown(cluster())


def test_every_node_has_its_own_row_where_there_are_several():
    rows = next(case.rows for case in case_times(cluster().results) if case.rows[0].name.endswith("4n8g"))
    assert [plain_text(row.name) for row in rows[1:]] == [f"– node{number}" for number in range(4)]
    assert {row.ranks for row in rows[1:]} == {8}


def test_of_very_many_nodes_the_slowest_are_shown():
    document = cluster()
    breakdown = document.results[3].breakdown
    ranks = tuple(
        replace(breakdown.ranks[0], rank=i, node=f"n{i}", own_seconds=1 + i / 100)
        for i in range(MOST_NODES + 20)
    )
    (case,) = case_times([replace(document.results[3], breakdown=replace(breakdown, ranks=ranks))])
    assert case.nodes_left_out == 20
    assert {plain_text(row.name) for row in case.rows[1:]} == {f"– n{i}" for i in range(20, MOST_NODES + 20)}


def test_the_losses_of_a_point_fill_its_bar():
    blocks = scaling_section(cluster().results, compared=False).blocks
    tables = [each for block in blocks if isinstance(block, Section) for each in block.blocks]
    rows = [row for table in tables if isinstance(table, Table) for row in table.rows]
    bars = [cell for row in rows for cell in row if isinstance(cell, Bar)]
    assert len(bars) == 6
    for bar in bars:
        assert sum(width for _look, width in bar.parts) == pytest.approx(1)


def test_where_the_ranks_do_not_tell_there_is_no_column_for_losses():
    text = as_markdown(h200())
    row = next(line for line in text.splitlines() if line.startswith("| 1n8g |"))
    assert "n/a" not in row
    assert "waiting for the slowest" not in text
    assert "Where the time goes" not in text
    sentence = SILENT.format(frameworks="pytorch")
    assert sentence in text
    assert sentence in as_html(h200())


def test_frameworks_that_do_not_tell_are_said_beside_those_that_do():
    timed, others = cluster(), six()
    both = replace(timed, results=(*timed.results, *others.results))
    sentence = SILENT.format(frameworks="pytorch, jax, tensorflow, paddle, oneflow, mindspore")
    assert sentence in as_markdown(both)
    assert sentence in as_html(both)


def test_a_single_result_does_not_scale():
    assert f"## {'Scaling'}" not in as_markdown(single())
    assert json.loads(run_json(single()))["scaling"] == []


def test_the_json_holds_the_losses_and_the_stragglers():
    tree = json.loads(run_json(cluster()))
    weak, strong = tree["scaling"]
    assert (weak["kind"], weak["baseline"], strong["global_batch"]) == ("weak", "1n1g", 256)
    last = weak["points"][-1]
    assert last["efficiency"]["value"] + sum(last["loss"].values()) == pytest.approx(1)
    assert tree["results"][3]["stragglers"][0]["node"] == "node2"
    assert len(tree["results"][3]["ranks"]) == 32


def test_the_names_of_a_series_and_its_points_are_those_of_the_contract():
    series = json.loads(run_json(cluster()))["scaling"][0]
    key = cluster().results[0].key.values().keys() - {"nodes", "devices_per_node"}
    assert set(series) == {*key, *registry.axes(), "kind", "global_batch", "baseline", "points"}
    names = {"topology", "devices", "batch_per_device", "throughput", "speedup", "efficiency", "loss"}
    assert set(series["points"][0]) == names


def test_the_csv_holds_the_shares():
    row = list(csv.DictReader(io.StringIO(run_csv(cluster()))))[3]
    assert float(row["time_shares_compute"]) + float(row["time_shares_communication"]) == pytest.approx(0.98)
    assert float(row["step_parts_straggling"]) > 0


def test_names_of_hosts_cannot_become_markup():
    page = as_html(hostile_nodes())
    assert "<img src=x" not in page
    assert len(re.findall(r"<script", page)) == len(re.findall(r"<script", as_html(cluster())))
    assert "<img" not in as_markdown(hostile_nodes())
