"""What other codes would call the MFU, and what a sample costs in energy, in every layout."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest
from run_pages import as_html, as_lines, as_markdown, in_language
from sample_documents import HOSTILE, h200

from trainmark.measure.figure import ConventionUtilisation, Utilisation
from trainmark.pages import number
from trainmark.pages.run.csv_table import run_csv
from trainmark.pages.run.record import run_json
from trainmark.pages.run.shares import arithmetic_section
from trainmark.view.blocks import plain_text


def counted(document, name="torchtitan"):
    """The first two results with the figures of a training at 500,000 tokens/s and 700 W."""
    own = Utilisation(0.583, 7.23e14, "measured", 7.98e8)
    other = ConventionUtilisation(name, Utilisation(0.6249, 7.23e14, "measured", 8.554e8))
    results = tuple(
        replace(
            result,
            unit="tokens",
            throughput=526_233.4,
            samples_per_joule=714.0,
            utilisation=own,
            hardware_utilisation=replace(own, value=0.721),
            conventions=(other,),
            memory_share=0.24,
        )
        for result in document.results[:2]
    )
    return replace(document, results=results)


def test_a_run_without_conventions_has_no_word_of_them():
    for page in (as_html(h200()), as_markdown(h200()), "\n".join(as_lines(h200()))):
        assert "Arithmetic, memory and energy" not in page
        assert "HFU" not in page


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_pages_have_both_tables_with_the_unit_of_the_workload(lang):
    document = counted(h200())
    for page in (as_html(document, lang), as_markdown(document, lang)):
        section = page.partition(in_language("Arithmetic, memory and energy", lang))[2]
        for cell in ("58.3 %", "72.1 %", "24.0 %", "1.40 mJ", "62.5 %", "0.7980", "0.8554", "torchtitan"):
            assert cell in section
        for name in ("energy a {unit}", "GFLOP a {unit}"):
            assert in_language(name, lang).format(unit="token") in section


def test_the_terminal_has_thousands_apart_and_the_count_once_for_results_that_share_it():
    lines = as_lines(counted(h200()))
    assert any("526,233 tokens/s" in line for line in lines)
    assert sum(line.strip().startswith("GFLOP a token") for line in lines) == 1


def test_counts_that_differ_are_told_apart_by_the_axes_that_cause_it():
    one, two = counted(h200()).results
    longer = replace(two.utilisation, flops_per_sample=9e8)
    two = replace(two, utilisation=longer, key=replace(two.key, axes=(("image_size", 256),)))
    (conventions,) = arithmetic_section([one, two]).blocks[-1].blocks
    cells = [plain_text(row[0]) for row in conventions.rows]
    assert cells[0] == "GFLOP a token 224²" and cells[2] == "GFLOP a token 256²"


def test_json_and_csv_have_each_convention_under_its_name():
    document = counted(h200())
    (result, _) = json.loads(run_json(document))["results"]
    assert result["hfu"]["value"] == 0.721 and result["joules_per_sample"] == pytest.approx(1 / 714)
    assert [(each["name"], each["value"]) for each in result["conventions"]] == [("torchtitan", 0.6249)]
    row = next(csv.DictReader(io.StringIO(run_csv(document))))
    assert (row["conventions"], row["hfu_value"]) == ("torchtitan=0.6249", "0.721")


def test_a_convention_with_a_hostile_name_writes_no_markup():
    document = counted(h200(), HOSTILE)
    assert "<img" not in as_html(document)
    assert "<img" not in as_markdown(document).partition("## Arithmetic")[2].partition("\n## ")[0]


@pytest.mark.parametrize(
    ("value", "shown"), [(2.5, "2.50 J"), (0.00140, "1.40 mJ"), (3.2e-6, "3.20 µJ"), (None, "n/a")]
)
def test_an_energy_is_shown_in_the_unit_that_it_has_digits_in(value, shown):
    assert number.joules(value) == shown
