"""A run in tokens and in sequences: no axis, ratio or table has both in one column."""

from __future__ import annotations

from dataclasses import replace

from run_pages import as_markdown
from sample_documents import GPU, h200, result

from trainmark.pages.label import by_series
from trainmark.pages.run import plot_scaling


def in_two_units():
    """The results of h200(), those in fp32 as sequences and the others as tokens."""
    document = h200()
    results = tuple(
        replace(each, unit="sequences" if each.key.precision == "fp32" else "tokens")
        for each in document.results
    )
    assert {each.unit for each in results} == {"tokens", "sequences"}
    return replace(document, results=results)


def panel_of(plot):
    return next(iter(plot.figures[0].views.values())).panels[0]


def test_one_axis_of_throughput_has_the_series_of_one_unit():
    document = in_two_units()
    groups = by_series(document.results)
    plot = plot_scaling.throughput(groups)
    assert panel_of(plot).y.title == f"{groups[0].results[0].unit}/s"
    texts = [text for mark in panel_of(plot).marks for text in getattr(mark, "texts", ())]
    assert texts and all(f"{groups[0].results[0].unit}/s" in text for text in texts)
    assert len(plot.legend) == len(groups)


def test_a_plot_over_a_varied_batch_has_one_unit():
    keys = [replace(GPU, framework=name, batch_per_device=batch) for name in ("a", "b") for batch in (8, 16)]
    results = [result(key, 1e5, unit="tokens" if key.framework == "a" else "sequences") for key in keys]
    assert {each.unit for own in plot_scaling.varied_axis(results).series.values() for each in own} == {
        "tokens"
    }


def test_the_table_says_the_unit_in_each_row():
    page = as_markdown(in_two_units())
    assert "tokens/s |" in page and "sequences/s |" in page
