"""Scaling, and where the time goes, in every layout."""

import csv
import io
import json
import re
from dataclasses import replace

import pytest
from sample_documents import HOSTILE, cluster, h200, single, six

from trainmark.report.format.words import words
from trainmark.report.render import csv_report, html, json_report, markdown
from trainmark.report.sections.scaling import MOST_NODES, case_times, scaling_tables
from trainmark.workloads import registry

EN = words("en")


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
    t = words(lang)
    page, text = html.render(cluster(), lang), markdown.render(cluster(), lang)
    assert t["strong_scaling"] in page
    for kind in ("weak_scaling", "strong_scaling"):
        assert f"### {t[kind]}" in text
    assert t["time"] in page
    assert f"## {t['time']}" in text


def test_a_slow_node_is_named_with_its_cost_in_both_pages():
    assert "node node2, −11.2 %" in html.render(cluster())
    assert "node node2, −11.2 %" in markdown.render(cluster())


def test_every_node_has_its_own_row_where_there_are_several():
    rows = next(case.rows for case in case_times(cluster().results) if case.topology == "4n8g")
    assert [row.name for row in rows[1:]] == ["node0", "node1", "node2", "node3"]
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
    assert {row.name for row in case.rows[1:]} == {f"n{i}" for i in range(20, MOST_NODES + 20)}


def test_the_losses_of_a_point_fill_its_bar():
    points = [
        point for table in scaling_tables(cluster().results, EN) for point in table.points if point.loss
    ]
    assert points
    for point in points:
        assert sum(width for _, width in html.loss_parts(point)) == pytest.approx(1)


def test_where_the_ranks_do_not_tell_there_is_no_column_for_losses():
    text = markdown.render(h200())
    row = next(line for line in text.splitlines() if line.startswith("| 1n8g |"))
    assert "n/a" not in row
    assert EN["loss_straggling"] not in text
    assert EN["time"] not in text
    sentence = EN["no_breakdown_note"].format(frameworks="pytorch")
    assert sentence in text
    assert sentence in html.render(h200())


def test_frameworks_that_do_not_tell_are_said_beside_those_that_do():
    timed, others = cluster(), six()
    both = replace(timed, results=(*timed.results, *others.results))
    sentence = EN["no_breakdown_note"].format(
        frameworks="pytorch, jax, tensorflow, paddle, oneflow, mindspore"
    )
    assert sentence in markdown.render(both)
    assert sentence in html.render(both)


def test_a_single_result_does_not_scale():
    assert f"## {EN['scaling']}" not in markdown.render(single())
    assert json.loads(json_report.render(single()))["scaling"] == []


def test_the_json_holds_the_losses_and_the_stragglers():
    tree = json.loads(json_report.render(cluster()))
    weak, strong = tree["scaling"]
    assert (weak["kind"], weak["baseline"], strong["global_batch"]) == ("weak", "1n1g", 256)
    last = weak["points"][-1]
    assert last["efficiency"]["value"] + sum(last["loss"].values()) == pytest.approx(1)
    assert tree["results"][3]["stragglers"][0]["node"] == "node2"
    assert len(tree["results"][3]["ranks"]) == 32


def test_the_names_of_a_series_and_its_points_are_those_of_the_contract():
    series = json.loads(json_report.render(cluster()))["scaling"][0]
    key = cluster().results[0].key.values().keys() - {"nodes", "devices_per_node"}
    assert set(series) == {*key, *registry.axes(), "kind", "global_batch", "baseline", "points"}
    names = {"topology", "devices", "batch_per_device", "throughput", "speedup", "efficiency", "loss"}
    assert set(series["points"][0]) == names


def test_the_csv_holds_the_shares():
    row = list(csv.DictReader(io.StringIO(csv_report.render(cluster()))))[3]
    assert float(row["time_shares_compute"]) + float(row["time_shares_communication"]) == pytest.approx(0.98)
    assert float(row["step_parts_straggling"]) > 0


def test_names_of_hosts_cannot_become_markup():
    page = html.render(hostile_nodes())
    assert "<img src=x" not in page
    assert len(re.findall(r"<script", page)) == len(re.findall(r"<script", html.render(cluster())))
    assert "<img" not in markdown.render(hostile_nodes())
