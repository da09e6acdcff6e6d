import csv
import io
from dataclasses import replace

import pytest
from sample_documents import GPU, cpu, h200, hostile, result

from trainmark.pages.run.csv_table import cell, run_csv


def rows(document):
    return list(csv.DictReader(io.StringIO(run_csv(document))))


def test_each_result_is_one_row_with_flat_names():
    document = h200()
    csv_rows = rows(document)
    assert len(csv_rows) == len(document.results)
    assert float(csv_rows[0]["throughput_median"]) == document.results[0].throughput
    assert csv_rows[7]["devices_per_node"] == "8"
    assert csv_rows[3]["doubts"] == "data-bound straggler"


def test_what_is_missing_is_an_empty_cell():
    row = rows(cpu())[0]
    assert row["throughput_low"] == row["mfu_value"] == row["samples_per_joule"] == ""


@pytest.mark.parametrize("first", ["=", "+", "-", "@", " =", "\t="])
def test_text_that_a_spreadsheet_would_compute_is_quoted(first):
    document = replace(h200(), results=(result(replace(GPU, device=f"{first}1+1"), 10.0),))
    assert rows(document)[0]["device"].startswith("'")


def test_a_negative_number_stays_a_number():
    assert cell(-1.5) == -1.5


def test_hostile_text_adds_no_row_and_no_control_character():
    text = run_csv(hostile())
    assert len(rows(hostile())) == 2
    assert "\x1b" not in text
    assert "\u202e" not in text
