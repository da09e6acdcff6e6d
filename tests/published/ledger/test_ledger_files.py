"""What a data file may say, and what a person is told when it says something else."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

from trainmark.base.errors import UserError
from trainmark.logs.ledger import find, load
from trainmark.logs.ledger.load import DATA, parse

FILE = """\
source: {title: A report, page: https://example.org/report, confidence: published, date: 2021-03-04}
shared: {workload: resnet50, framework: pytorch, device: Tesla V100-SXM2-16GB, precision: amp}
tables:
  - about: One node
    shared: {nodes: 1, batch_per_device: 256}
    columns: [devices_per_node, throughput, speedup]
    rows:
      - [1, 800, 1.0]
      - [8, 6000.5, 7.5]
errata:
  - of: {devices_per_node: 8}
    says: The clock
      was wrong.
"""


def refused(text):
    with pytest.raises(UserError) as refusal:
        parse(text, "mine.yaml")
    return str(refusal.value)


def test_a_row_has_what_its_file_and_its_table_share():
    one, eight = parse(FILE, "mine.yaml")
    assert (one.source, one.origin.date, one.row.framework) == ("mine", "2021-03-04", "pytorch")
    assert (eight.row.topology, eight.row.batch_per_device, eight.row.throughput) == ("1n8g", 256, 6000.5)


def test_a_cell_overrides_what_is_shared():
    text = FILE.replace("[devices_per_node,", "[precision,").replace("[1, 800", "[fp32, 800")
    text = text.replace("[8, 6000.5", "[~, 6000.5").partition("errata")[0]
    assert [entry.row.precision for entry in parse(text, "mine.yaml")] == ["fp32", None]


def test_an_erratum_goes_to_the_rows_it_fits_and_no_other():
    assert [entry.errata for entry in parse(FILE, "mine.yaml")] == [(), ("The clock was wrong.",)]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "batch_per_device: 256",
            "batchsize: 256",
            "mine.yaml:5: unknown key 'batchsize'; did you mean 'batch_per_device'?",
        ),
        ("speedup]", "speed_up]", "mine.yaml:6: unknown key 'speed_up'; did you mean 'speedup'?"),
        ("speedup]", "throughput]", "mine.yaml:6: 'throughput' is given twice; keep one."),
        ("errata:", "erata:", "mine.yaml:10: unknown key 'erata'; did you mean 'errata'?"),
        ("precision: amp", "precision: fp61", "mine.yaml:2: 'fp61' is no precision; did you mean 'fp16'?"),
        ("[1, 800, 1.0]", "[1, 800]", "mine.yaml:8: a row here has 3 cells, one a column."),
        ("6000.5", "-1", "mine.yaml:9: 'throughput' must be a number above 0."),
        ("6000.5", ".inf", "mine.yaml:9: 'throughput' must be a number above 0."),
        ("6000.5", "fast", "mine.yaml:9: 'throughput' must be a number above 0."),
        ("nodes: 1", "nodes: true", "mine.yaml:5: 'nodes' must be a whole number above 0."),
        ("framework: pytorch, ", "", "mine.yaml:8: the row does not say its framework; add it."),
        (
            "page: https://example.org/report, ",
            "",
            "mine.yaml:1: 'source' does not say its page; add it.",
        ),
        (
            "{devices_per_node: 8}",
            "{devices_per_node: 9}",
            "mine.yaml:11: the erratum fits no row of the file; mend its 'of'.",
        ),
        ("pytorch,", "2.0,", "mine.yaml:2: 'framework' must be text; put it in quotes."),
    ],
)
def test_a_mistake_is_told_in_one_sentence_with_its_line(old, new, sentence):
    assert old in FILE
    assert refused(FILE.replace(old, new, 1)) == sentence


@pytest.mark.parametrize("text", ["", "[]", "source: 1", "a: [", "tables: {}\nsource: {}", "source:\n  - x"])
def test_what_is_no_ledger_file_is_refused(text):
    assert refused(text).startswith("mine.yaml")


@pytest.mark.parametrize("file", sorted(DATA.iterdir()), ids=lambda file: file.name)
def test_every_file_of_the_ledger_passes_the_check_and_is_read_alike_without_it(file):
    checked = parse(file.read_text(encoding="utf-8"), file.name)
    assert checked == tuple(entry for entry in load() if entry.source == file.stem)


def test_a_file_may_be_json_and_a_row_may_have_a_date_of_its_own():
    text = FILE.partition("errata")[0].replace("nodes: 1,", "nodes: 1, date: 2019-05-06,")
    written = json.dumps(yaml.safe_load(text), default=str)
    entries = parse(written, "mine.json")
    assert [entry.source for entry in entries] == ["mine", "mine"]
    assert [entry.date for entry in entries] == ["2019-05-06", "2019-05-06"]
    assert [entry.row for entry in entries] == [entry.row for entry in parse(text, "mine.yaml")]


def test_a_number_of_devices_without_nodes_gives_a_throughput_per_device():
    text = (
        FILE.partition("errata")[0].replace("nodes: 1, ", "").replace("[devices_per_node,", "[total_devices,")
    )
    assert [entry.row.per_device for entry in parse(text, "mine.yaml")] == [800, 6000.5 / 8]
    assert {entry.row.topology for entry in parse(text, "mine.yaml")} == {None}


def test_a_further_file_is_read_beside_the_ledger(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(FILE, encoding="utf-8")
    assert len(load(path)) == len(load()) + 2


def test_a_file_that_is_no_text_is_refused_by_name(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match=r"mine\.yaml is not UTF-8 text"):
        load(path)


def test_a_source_has_a_name_of_its_own():
    by_name = {}
    for entry in load():
        assert by_name.setdefault(entry.source, entry.origin) == entry.origin
    assert len(by_name) == len({origin.title for origin in by_name.values()}) > 20


def test_a_device_is_found_by_the_name_of_its_family_and_by_its_drivers_name():
    short, long = find(load(), device="V100"), find(load(), device="Tesla V100-SXM2-16GB")
    assert short == long != ()


def test_filters_are_taken_together():
    entries = find(load(), framework="oneflow", precision="fp32", topology="4n8g", workload="resnet50")
    assert {entry.row.throughput for entry in entries} == {11548.451, 11623.889, 12411.97}


def test_a_value_that_no_row_has_is_refused_with_the_nearest_that_one_has():
    with pytest.raises(UserError, match=r"no framework 'mxnt'; did you mean 'mxnet'\?"):
        find(load(), framework="mxnt")


def test_every_source_is_in_the_table_of_the_page_with_its_number_of_rows():
    page = (Path(__file__).parents[3] / "docs" / "ledger.md").read_text(encoding="utf-8")
    page_counts = dict(re.findall(r"^\| `([^`]+)` \|.*\| (\d+) \|$", page, re.MULTILINE))
    row_counts = Counter(entry.source for entry in load())
    assert page_counts == {source: str(rows) for source, rows in row_counts.items()}
    assert f"{row_counts.total()} rows from {len(row_counts)} sources" in page


def test_the_example_on_the_page_is_a_file_that_can_be_read():
    page = (Path(__file__).parents[3] / "docs" / "ledger.md").read_text(encoding="utf-8")
    example = re.search(r"```yaml\n(.*?)```", page, re.DOTALL)[1]
    assert [entry.row.speedup for entry in parse(example, "example.yaml")] == [1.0, 7.8]
