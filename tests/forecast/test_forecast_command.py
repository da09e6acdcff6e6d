"""`trainmark forecast` as people and scripts call it."""

import json
from xml.etree import ElementTree

import pytest
from fabricated_runs import fabricate

from trainmark.base.errors import UserError
from trainmark.events import RunEnd, RunStart, stream

TYPED = ("--step", "0.0421", "--batch", "256", "--latency", "5e-6", "--bandwidth", "12.5e9")
RATES = {"1n1g": [100.0, 101.0, 102.0], "1n2g": [190.0, 191.0, 192.0]}


@pytest.fixture
def run(tmp_path):
    return fabricate(tmp_path, "mine", RATES)


def test_a_step_and_a_fabric_are_enough(forecast):
    (case,) = json.loads(forecast(*TYPED, "--to", "1n8g,2n8g,512n8g", "--json").output)
    assert case["measured"] == {"1n1g": pytest.approx(256 / 0.0421)}
    assert [one["topology"] for one in case["forecasts"]] == ["1n8g", "2n8g", "512n8g"]
    for one in case["forecasts"]:
        assert one["low"] < one["throughput"] < one["high"] <= one["devices"] * 256 / 0.0421 * 1.0001
        assert one["confidence"] == 0.8


def test_the_table_has_a_line_for_each_size(forecast):
    lines = forecast(*TYPED, "--to", "2n8g,4n8g").output.splitlines()
    assert lines[2].split()[:3] == ["topology", "devices", "forecast"]
    assert [line.split()[0] for line in lines[3:5]] == ["2n8g", "4n8g"]


def test_a_slower_network_gives_less(forecast):
    def rate(bandwidth):
        output = forecast(*TYPED[:-1], bandwidth, "--to", "4n8g", "--json").output
        return json.loads(output)[0]["forecasts"][0]["throughput"]

    assert rate("1e9") < rate("12.5e9") < rate("100e9")


@pytest.mark.parametrize(
    "option", [("--algorithm", "ring"), ("--gradient-bytes", "2"), ("--parameters", "9")]
)
def test_what_is_exchanged_and_how_changes_the_forecast(forecast, option):
    assert forecast(*TYPED, "--to", "4n8g", *option).output != forecast(*TYPED, "--to", "4n8g").output


def test_a_run_is_forecast_from_its_own_sizes(forecast, run):
    (case,) = json.loads(forecast("mine", "--to", "2n2g,8n2g", "--bandwidth", "1e9", "--json").output)
    assert case["measured"] == {"1n1g": pytest.approx(101.0), "1n2g": pytest.approx(191.0)}
    two, eight = (one["throughput"] for one in case["forecasts"])
    assert 191 < two < 2 * 191 < eight < 8 * 191


def test_the_latest_run_and_its_next_doublings_are_meant_where_nothing_is_said(forecast, run):
    (case,) = json.loads(forecast("--bandwidth", "1e9", "--json").output)
    assert [one["topology"] for one in case["forecasts"]] == [f"{2**n}n2g" for n in range(1, 7)]


def test_the_measured_fabric_of_a_run_is_used(forecast, run):
    link = {"from": 0, "to": 1, "same_node": False, "latency_seconds": 1e-5, "bytes_per_second": 2e9}
    (run.path / "fabric.json").write_text(json.dumps({"links": [link]}), encoding="utf-8")
    (case,) = json.loads(forecast("mine", "--to", "2n2g", "--json").output)
    assert (case["fabric"]["bandwidth"], case["fabric"]["latency"]) == (2e9, 1e-5)
    (case,) = json.loads(forecast("mine", "--to", "2n2g", "--bandwidth", "3e9", "--json").output)
    assert (case["fabric"]["bandwidth"], case["fabric"]["latency"]) == (3e9, 1e-5)


def test_the_buckets_that_a_run_reported_are_used(forecast, run):
    before = forecast("mine", "--to", "4n2g", "--bandwidth", "1e9", "--json").output
    events = run.trial("pytorch-fp32-b32-1n2g", 1).done / "events"
    events.mkdir()
    facts = {"gradient_buckets": [{"bytes": 8, "ready_seconds": 0.01}]}
    run_events = (RunStart(0, 2, 1.0, 2.0), RunEnd(0, 2.0, 3.0, facts))
    (events / "rank0.jsonl").write_text(
        "".join(stream.encode(one) + "\n" for one in run_events), encoding="utf-8"
    )
    after = forecast("mine", "--to", "4n2g", "--bandwidth", "1e9", "--json").output
    rates = [json.loads(each)[0]["forecasts"][0]["throughput"] for each in (before, after)]
    assert rates[0] < rates[1]


def test_a_network_that_nobody_told_of_is_asked_for(forecast, run):
    with pytest.raises(UserError, match=r"give --bandwidth .* or measure it with `trainmark fabric`"):
        forecast("mine", "--to", "2n2g")


def test_one_node_needs_no_network(forecast, run):
    assert forecast("mine", "--to", "1n4g").exit_code == 0


def test_a_run_without_a_figure_of_one_device_is_refused(forecast, tmp_path):
    fabricate(tmp_path, "wide", {"1n2g": [190.0]})
    with pytest.raises(UserError, match="no finished case of one device"):
        forecast("wide", "--to", "1n4g")


@pytest.mark.parametrize(
    "words, says",
    [
        (("--to", "8"), "'8' is not a topology"),
        (("--to", "99999n8g"), "more than 65,536 devices"),
        (("--step", "0.1"), "needs --batch"),
        ((*TYPED[:-1], "nan"), "--bandwidth takes a number"),
        ((*TYPED[:-1], "inf"), "not in the range"),
        (("--step", "0", "--batch", "1"), "0.0 is not in the range"),
        ((*TYPED, "--plot", "p.png"), "neither"),
        (("--validate", "--to", "2n8g"), "leave the run and sizes out"),
    ],
)
def test_what_cannot_be_forecast_is_said_in_a_sentence(forecast, words, says):
    result = forecast(*words)
    assert result.exit_code == 2
    assert says in result.output


def test_fabric_json_that_is_none_is_refused(forecast, run):
    (run.path / "fabric.json").write_text('{"links": [3]}', encoding="utf-8")
    with pytest.raises(UserError, match=r"fabric\.json cannot be read"):
        forecast("mine", "--to", "2n2g")


def test_validation_prints_every_row_and_four_summaries(forecast):
    lines = forecast("--validate").output.splitlines()
    assert len(lines) == 1 + 91 + 1 + 4
    assert lines[-4].startswith("all series: 91 rows, median error ")
    assert lines[-3].startswith("without odd series: ")


def test_validation_as_json_says_the_same(forecast):
    document = json.loads(forecast("--validate", "--json").output)
    assert len(document["rows"]) == document["summary"]["all series"]["rows"] == 91
    row = document["rows"][0]
    assert row["error"] == pytest.approx(row["predicted"] / row["published"] - 1)
    assert set(document["by_source"]) == {row["source"] for row in document["rows"]}


@pytest.mark.parametrize("words, panels", [((*TYPED, "--to", "1n8g,2n8g"), 1), (("--validate",), 46)])
def test_the_plot_has_a_panel_for_each_case(forecast, tmp_path, words, panels):
    path = tmp_path / "p.svg"
    assert forecast(*words, "--plot", str(path)).exit_code == 0
    drawn = ElementTree.parse(path).getroot()
    assert len(drawn.findall(".//{*}polygon")) == panels
    assert all(float(dot.get("cy")) == float(dot.get("cy")) for dot in drawn.findall(".//{*}circle"))


def test_the_html_page_has_the_rows_and_the_assumptions(forecast, tmp_path):
    path = tmp_path / "p.html"
    forecast(*TYPED, "--plot", str(path))
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "<polygon" in text and 'class="sortable"' in text
    assert "<h2>Assumptions</h2>" in text and "<dt>all-reduce</dt><dd>hierarchical</dd>" in text
    assert "12.5 GB/s, 5.00 µs" in text
