"""The share of the speed of light in every layout."""

import csv
import io
import json
from dataclasses import replace

import pytest
from lit_documents import HALF, lit
from sample_documents import HOSTILE, h200, hostile

from trainmark.report.format.words import words
from trainmark.report.render import csv_report, html, json_report, markdown
from trainmark.report.render import terminal as text
from trainmark.report.sections import light


def pages(document, lang="en"):
    return html.render(document, lang), markdown.render(document, lang)


def test_a_run_without_a_reference_has_no_word_of_it():
    for page in (*pages(h200()), "\n".join(text.document_lines(h200()))):
        assert "Speed of light" not in page
        assert "share of light" not in page


def test_only_results_that_have_a_reference_are_rows():
    rows = light.light_rows(lit())
    assert {row.result.key.precision for row in rows} == {"amp"}
    assert [row.result.key.devices for row in rows] == [1, 2, 4, 8]


def test_contenders_at_one_batch_stand_together_the_fastest_first():
    document = lit()
    one = next(result for result in document.results if result.key.devices == 1)
    asked = [("a", 64, 100.0), ("b", 256, 900.0), ("c", 64, 300.0), ("d", 256, 950.0)]
    contenders = tuple(
        replace(one, key=replace(one.key, framework=name, batch_per_device=batch), throughput=rate)
        for name, batch, rate in asked
    )
    rows = light.light_rows(replace(document, results=contenders))
    assert [row.result.key.framework for row in rows] == ["c", "a", "d", "b"]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_pages_have_the_share_beside_both_other_reference_rates(lang):
    t = words(lang)
    share = light.COLUMNS["light_share"](light.light_rows(lit())[0]).text
    for page in pages(lit(), lang):
        section = page.partition(t["light"])[2]
        for name in ("light_share", "mfu", "per_joule", "rate_a_device"):
            assert t[name].format(unit="images") in section
        assert share in section


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_pages_say_what_the_reference_is(lang):
    for page in pages(lit(), lang):
        for phrase in ("12,000", "512", "amp", "NVIDIA H200", "0.1.0", "2025-11-13"):
            assert phrase in page.partition(words(lang)["light"])[2].partition("</section>")[0]


def test_a_reference_that_no_result_is_held_against_is_not_named():
    rows = light.light_rows(lit(HALF, replace(HALF, axes=(("image_size", 160),), rate=20_000.0)))
    assert "20,000" not in light.note(rows, words("en"))


def test_what_no_result_knows_takes_no_column():
    document = lit()
    plain = tuple(replace(r, utilisation=None, samples_per_joule=None) for r in document.results)
    rows = light.light_rows(replace(document, results=plain))
    assert list(light.columns(rows)) == ["case", "rate_a_device", "light_share"]


def test_the_terminal_has_a_line_for_each_share_and_one_for_the_reference():
    lines = text.document_lines(lit())
    begin = lines.index("Speed of light")
    assert lines[begin + 2].startswith("pytorch amp/dynamic b256 1n1g")
    assert lines[begin + 6].startswith("A share of 100 % is what one device does with our own fused")


def test_json_and_csv_carry_the_share_and_nothing_where_there_is_none():
    document = lit()
    shares = [result["light_share"] for result in json.loads(json_report.render(document))["results"]]
    rows = [row["light_share"] for row in csv.DictReader(io.StringIO(csv_report.render(document)))]
    assert shares[3] == document.results[3].throughput / (8 * HALF.rate)
    assert shares[4:] == [None] * 4
    assert rows == [repr(share) if share is not None else "" for share in shares]


def test_a_device_with_a_hostile_name_writes_no_markup():
    document = replace(hostile(), light=(replace(HALF, device=HOSTILE),))
    assert light.light_rows(document)
    assert "<img" not in html.render(document)
    assert "<img" not in markdown.render(document).partition("## Speed of light")[2].partition("\n## ")[0]
