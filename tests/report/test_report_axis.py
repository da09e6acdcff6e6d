"""The plot against what a run varies, where that is not the number of devices."""

from dataclasses import replace

import pytest
from run_pages import as_html
from sample_documents import GPU, cluster, h200, result, single

from trainmark.pages.run.plot_scaling import axis_plot, varied_axis
from trainmark.view.chart.model import Dots

BATCHES = tuple(result(replace(GPU, batch_per_device=batch), 10.0 * batch) for batch in (1024, 64, 512))


def dots(results):
    (panel,) = axis_plot(varied_axis(results)).figures[0].views["Linear"].panels
    return [mark for mark in panel.marks if isinstance(mark, Dots)]


def test_a_sweep_of_batches_is_drawn_in_the_order_of_their_numbers():
    (drawn,) = dots(BATCHES)
    assert drawn.x == [64, 512, 1024]
    assert drawn.texts[0].startswith("batch per device 64: ")


def test_each_framework_has_a_line_of_its_own():
    both = [*BATCHES, *(replace(r, key=replace(r.key, framework="jax")) for r in BATCHES)]
    assert [line.name for line in dots(both)] == ["pytorch amp/dynamic 1n1g", "jax amp/dynamic 1n1g"]


def test_an_axis_of_the_workload_and_the_threads_are_drawn_too():
    sizes = [result(replace(GPU, axes=(("image_size", size),)), 10.0) for size in (128, 224)]
    threads = [result(replace(GPU, threads=count), 10.0) for count in (1, 2)]
    assert (varied_axis(sizes).field, varied_axis(threads).field) == ("image_size", "threads")


@pytest.mark.parametrize("document", [h200(), cluster(), single()], ids=["h200", "cluster", "single"])
def test_nothing_is_drawn_where_the_devices_vary_or_nothing_does(document):
    assert varied_axis(document.results) is None


def test_the_plot_stands_right_after_the_table():
    text = as_html(replace(single(), results=BATCHES))
    places = [text.index(part) for part in ("</table>", "Throughput by batch per device", 'data-plot="axis"')]
    assert places == sorted(places)
    assert places[-1] < text.index('data-plot="steps"')
