"""`trainmark ledger` as people and scripts call it."""

import json
import re
from collections import Counter
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from trainmark.base.errors import UserError
from trainmark.cli.main import trainmark
from trainmark.logs.ledger import load
from trainmark.logs.ledger.entry import device_family
from trainmark.logs.ledger.load import parse
from trainmark.pages import ledger
from trainmark.pages.ledger import FEWEST_DRAWN
from trainmark.view import frame, html

HOSTILE = """\
source: {title: "<img src=x onerror=alert(1)>", page: "javascript:1", confidence: published}
shared: {workload: "</script><script>alert(1)</script>", framework: "<b>x</b>", device: "<i>d</i>"}
tables:
  - columns: [nodes, devices_per_node, throughput, note]
    rows: [[1, 1, 5, "<img src=y>"]]
"""
KEYS = [
    *("source", "date", "framework", "framework_version", "workload", "device", "precision", "loss_scale"),
    *("batch_per_device", "nodes", "devices_per_node", "throughput", "speedup", "memory_mb"),
    *("time_to_train_s", "top1"),
]


def page_of(entries):
    return html.render(ledger.ledger_page(entries))


def called(*words):
    return CliRunner().invoke(trainmark, ["ledger", *words], catch_exceptions=False).output


def test_the_json_rows_begin_with_the_keys_that_scripts_rely_on():
    rows = json.loads(called("--json"))
    assert len(rows) == len(load())
    assert all(list(row)[: len(KEYS)] == KEYS for row in rows)


def test_what_a_source_does_not_say_is_null():
    (row,) = json.loads(called("--source", "paddle-models-1.8", "--json"))
    assert (row["throughput"], row["speedup"], row["runs"], row["mfu"]) == (28594, None, None, None)


def test_the_table_has_a_line_for_each_row_and_then_the_errata_it_points_to():
    lines = called("--source", "airank-pytorch").splitlines()
    assert len(lines) == 1 + 3 + 1 + 4
    assert re.search(r"1n8g +6,244\.87 +img/s +7\.27 +17,501 +76\.2 +real +\[\d\]$", lines[2])
    assert lines[5].startswith("[1] airank-pytorch: ")


def test_a_model_a_device_and_a_span_of_years_are_taken_together():
    rows = json.loads(called("--model", "LLaMA3", "--device", "h100", "--year", "2024-2025", "--json"))
    assert rows and all(device_family(row["device"]) == "h100" for row in rows)
    assert {row["workload"] for row in rows} >= {"llama3-8b", "llama3.1-8b", "llama3.1-405b"}
    assert {row["date"][:4] for row in rows} == {"2024", "2025"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--year", "24"), "'24' is no year; write 2024, or 2021-2023."),
        (("--model", "resnt50"), "the ledger has no model 'resnt50'; did you mean 'resnet50'?"),
    ],
)
def test_a_year_or_a_model_that_cannot_be_meant_is_refused(words, sentence):
    with pytest.raises(UserError) as refusal:
        called(*words)
    assert str(refusal.value) == sentence


def test_filters_that_no_row_meets_together_say_so():
    assert called("--framework", "jax", "--precision", "tf32") == "no row of the ledger is all of that\n"


def test_a_file_of_ones_own_is_listed_with_the_rest(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(HOSTILE, encoding="utf-8")
    assert len(json.loads(called("--also", str(path), "--source", "mine", "--json"))) == 1


def test_a_plot_of_another_kind_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"an \.html or an \.svg file; p\.png is neither"):
        called("--plot", str(tmp_path / "p.png"))


def test_the_svg_has_a_dot_for_each_row_with_a_throughput_per_device(tmp_path):
    path = tmp_path / "p.svg"
    called("--workload", "bert-base", "--plot", str(path))
    drawn = ElementTree.parse(path).findall(".//{*}g/*/{*}title")
    dots = [title for title in drawn if "a device" in title.text]
    assert len(dots) == sum(entry.row.workload == "bert-base" for entry in load())


def test_the_page_has_every_row_and_a_dot_for_each_of_a_workload_with_several():
    text = page_of(load())
    drawn = text.count(" data-row=")
    dots = Counter((e.row.workload, e.row.unit) for e in load() if e.row.per_device and e.row.device)
    assert drawn == sum(count for count in dots.values() if count >= FEWEST_DRAWN)
    assert text.count("<option>") < 150
    table = json.loads(re.search(r'id="ledger-rows">(.*?)</script>', text, re.S)[1])
    assert [table["columns"][0][row[0]] for row in table["rows"]] == [entry.source for entry in load()]


def test_the_page_of_all_rows_is_under_a_megabyte():
    assert len(page_of(load()).encode()) < 1_000_000


def test_a_dot_refers_to_the_row_that_it_stands_for():
    entries = [entry for entry in load() if entry.row.workload == "bert-base"]
    marks = ledger.plot(entries).figures[0].views[""].panels[0].marks
    for mark in marks:
        assert list(mark.x) == [entries[row].row.per_device for row in mark.references]


def test_text_from_a_file_makes_no_element_in_a_plot():
    entries = parse(HOSTILE, "mine.yaml")
    page, svg = page_of(entries), ledger.svg(entries)
    assert page.count("<script") == 4
    assert "<img" not in page + svg and "<b>" not in page + svg and "<i>" not in page + svg


@pytest.mark.parametrize("render", [page_of, ledger.svg])
def test_a_choice_with_no_throughput_at_all_still_makes_a_file(render):
    assert render([entry for entry in load() if entry.source == "flax"])


def test_the_page_runs_only_its_own_scripts():
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', page_of(load()))[1]
    assert policy.count("sha256-") == 3
    assert frame.policy([])[:18] == "default-src 'none'" and policy.startswith("default-src &#39;none&#39;")
