"""The share of the speed of light in every layout."""

import csv
import io
import json
from dataclasses import replace

import pytest
from lit_documents import HALF, lit
from run_pages import as_html, as_lines, as_markdown, in_language
from sample_documents import HOSTILE, h200, hostile

from trainmark.pages.run.csv_table import run_csv
from trainmark.pages.run.record import run_json
from trainmark.pages.run.shares import reference_section
from trainmark.view.blocks import plain_text


def pages(document, lang="en"):
    return as_html(document, lang), as_markdown(document, lang)


def table(document):
    (shown,) = reference_section(document).blocks
    return shown


def test_a_run_without_a_reference_has_no_word_of_it():
    for page in (*pages(h200()), "\n".join(as_lines(h200()))):
        assert "Speed of light" not in page
        assert "share of light" not in page


def test_only_results_that_have_a_reference_are_rows():
    cases = [row[0].split() for row in table(lit()).rows]
    assert {case[1] for case in cases} == {"amp/dynamic"}
    assert [case[-1] for case in cases] == ["1n1g", "1n2g", "1n4g", "1n8g"]


def test_contenders_at_one_batch_stand_together_the_fastest_first():
    document = lit()
    one = next(result for result in document.results if result.key.devices == 1)
    asked = [("a", 64, 100.0), ("b", 256, 900.0), ("c", 64, 300.0), ("d", 256, 950.0)]
    contenders = tuple(
        replace(one, key=replace(one.key, framework=name, batch_per_device=batch), throughput=rate)
        for name, batch, rate in asked
    )
    rows = table(replace(document, results=contenders)).rows
    assert [row[0].split()[0] for row in rows] == ["c", "a", "d", "b"]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_pages_have_the_share_beside_both_other_reference_rates(lang):
    share = table(lit()).rows[0][2][0].text
    for page in pages(lit(), lang):
        section = page.partition(in_language("Speed of light", lang))[2]
        assert in_language("share of light", lang) in section
        for name in ("MFU", "images/J", in_language("{unit} a device", lang).format(unit="images/s"), share):
            assert name in section


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_pages_say_what_the_reference_is(lang):
    for page in pages(lit(), lang):
        for phrase in ("12,000", "512", "amp", "NVIDIA H200", "0.1.0", "2025-11-13"):
            assert phrase in page.partition(in_language("Speed of light", lang))[2].partition("</section>")[0]


def test_a_reference_that_no_result_is_held_against_is_not_named():
    (note,) = table(lit(HALF, replace(HALF, axes=(("image_size", 160),), rate=20_000.0))).notes
    assert "12,000" in note and "20,000" not in note


def test_what_no_result_knows_takes_no_column():
    document = lit()
    plain = tuple(replace(r, utilisation=None, samples_per_joule=None) for r in document.results)
    header = table(replace(document, results=plain)).header
    assert list(map(plain_text, header)) == ["case", "images/s a device", "share of light"]


def test_the_terminal_has_a_line_for_each_share_and_one_for_the_reference():
    lines = as_lines(lit())
    begin = lines.index("Speed of light")
    assert lines[begin + 2].startswith("pytorch amp/dynamic b256 1n1g")
    assert lines[begin + 6].startswith("A share of 100 % is what one device does with our own fused")


def test_json_and_csv_carry_the_share_and_nothing_where_there_is_none():
    document = lit()
    shares = [result["light_share"] for result in json.loads(run_json(document))["results"]]
    rows = [row["light_share"] for row in csv.DictReader(io.StringIO(run_csv(document)))]
    assert shares[3] == document.results[3].throughput / (8 * HALF.rate)
    assert shares[4:] == [None] * 4
    assert rows == [repr(share) if share is not None else "" for share in shares]


def test_a_device_with_a_hostile_name_writes_no_markup():
    document = replace(hostile(), reference_rates=(replace(HALF, device=HOSTILE),))
    assert table(document).rows
    assert "<img" not in as_html(document)
    assert "<img" not in as_markdown(document).partition("## Speed of light")[2].partition("\n## ")[0]
