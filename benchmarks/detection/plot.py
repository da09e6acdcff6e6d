"""The plot of change-points.md: steps detected by size, results until then, false alarms by machine."""

from __future__ import annotations

from benchmarks.detection.score import Score
from benchmarks.detection.trial import SIZES
from benchmarks.simulated_histories import MACHINES
from trainmark.view.chart import svg
from trainmark.view.chart.axis import Axis, linear
from trainmark.view.chart.model import Bars, Chart, Dots, Label, Line, Mark, Panel, tone

Scores = dict[tuple[str, float], Score]
RESULTS = tuple(range(1, 11))


def plot(scores: dict[str, Scores]) -> str:
    """Return the SVG file: one colour for each detector."""
    charts = [
        ("Steps found at a look at the whole history, all machines but drift", _by_size(scores)),
        ("Steps of 2 % on noise of 0.5 %, after 30 results: found so many results later", _by_delay(scores)),
        ("False alarms in 1,000 clean points, a look after every result", _alarms(scores)),
    ]
    return svg.sheet(charts, [(tone(i), name) for i, name in enumerate(scores)])


def _by_size(scores: dict[str, Scores]) -> Chart:
    places = [float(index) for index in range(len(SIZES))]
    marks: list[Mark] = []
    for index, values in enumerate(scores.values()):
        rates = [100 * values["all but drift", size].rate for size in SIZES]
        marks += _line(places, rates, index)
    x = Axis(
        -0.3,
        len(SIZES) - 0.7,
        tuple((at, f"{100 * size:g} %") for at, size in zip(places, SIZES, strict=True)),
    )
    return Chart(x, [Panel(_percent(), marks, 220)])


def _by_delay(scores: dict[str, Scores]) -> Chart:
    marks: list[Mark] = []
    places = [float(results) for results in RESULTS]
    for index, values in enumerate(scores.values()):
        marks += _line(places, [100 * values["after 30", 0.02].found_within(n) for n in RESULTS], index)
    return Chart(Axis(0.5, 10.5, tuple((at, f"{at:g}") for at in places)), [Panel(_percent(), marks, 220)])


def _alarms(scores: dict[str, Scores]) -> Chart:
    marks: list[Mark] = []
    names = [machine.name for machine in MACHINES]
    width = 0.8 / len(scores)
    for index, values in enumerate(scores.values()):
        places = [at + (index - (len(scores) - 1) / 2) * width for at in range(len(names))]
        heights = [values[name, 0.0].alarms_per_1000 for name in names]
        texts = [f"{height:.2f}" for height in heights]
        marks.append(Bars(tone=tone(index), x=places, y=heights, texts=texts, width=0.9 * width))
        # The figure above each bar: one of 0.1 is not seen beside one of 30.
        labels = (f"{height:.1f}" for height in heights)
        for place, height, text in zip(places, heights, labels, strict=True):
            marks.append(Label(tone="ink", x=place, y=height, text=text, anchor="middle", rise=4))
    highest = [values[name, 0.0].alarms_per_1000 for values in scores.values() for name in names]
    x = Axis(-0.5, len(names) - 0.5, tuple((float(at), name) for at, name in enumerate(names)))
    return Chart(x, [Panel(linear(highest), marks, 220)])


def _percent() -> Axis:
    return linear([], suffix=" %", bounds=(0, 104))


def _line(x: list[float], y: list[float], index: int) -> list[Mark]:
    texts = [f"{value:.0f} %" for value in y]
    return [Line(tone=tone(index), x=x, y=y), Dots(tone=tone(index), x=x, y=y, texts=texts)]
