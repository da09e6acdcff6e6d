"""Evaluations and loss of a training, over time or over steps: every seed, the target, the crossing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from trainmark.measure.figure import Evaluation
from trainmark.metric import Metric, score
from trainmark.report.document import Curve
from trainmark.report.format import number
from trainmark.report.plots.plot import Figure, Plot, name, short

HEIGHT = 520
UNITS = ((5400.0, 3600.0, "axis_time_h"), (300.0, 60.0, "axis_time_min"), (0.0, 1.0, "axis_time_s"))
SCORES, LOSS = (0.44, 1.0), (0.0, 0.36)

# Of an evaluation its place on the axis: a step, or seconds.
Place = Callable[[Evaluation], float]


def plot(curves: Sequence[Curve], t: dict[str, str]) -> Plot | None:
    """One figure a case, chosen on the page; its views are the two axes."""
    cases: dict[str, list[Curve]] = {}
    for curve in curves:
        cases.setdefault(curve.case, []).append(curve)
    figures = [_figure(case, members, t) for case, members in cases.items()]
    return Plot("training", HEIGHT, figures, []) if figures else None


def _figure(case: str, curves: Sequence[Curve], t: dict[str, str]) -> Figure:
    longest = max((e.end for curve in curves for e in curve.evaluations), default=0.0)
    longest = max([longest, *(curve.seconds[-1] for curve in curves if curve.seconds)])
    scale, title = next((scale, title) for least, scale, title in UNITS if longest >= least)
    data: list[dict[str, Any]] = []
    for curve in curves:
        loss = [short(value) for value in curve.losses]
        time = [short(value / scale) for value in curve.seconds]
        data += _traces(curve, t, t["by_time"], time, loss, lambda e: e.end / scale)
        data += _traces(curve, t, t["by_steps"], list(curve.steps), loss, lambda e: float(e.step))
    # Rings above all lines, whoever's.
    data.sort(key=lambda trace: trace["mode"] == "markers")
    metric = next((curve.metrics[0] for curve in curves if curve.metrics), None)
    targets = sorted({curve.target for curve in curves if curve.target is not None}) if metric else []
    layout = {
        "xaxis": {"anchor": "y2", "rangemode": "tozero", "title": {"text": t[title]}},
        "yaxis": {"domain": list(SCORES), "rangemode": "tozero", "title": {"text": _axis_title(metric)}},
        "yaxis2": {"domain": list(LOSS), "rangemode": "tozero", "title": {"text": t["axis_loss"]}},
        "shapes": [_target_line(metric, target) for target in targets if metric],
        "annotations": [_target_name(metric, target, t) for target in targets if metric],
    }
    views = {
        t["by_time"]: {"xaxis": {"title": {"text": t[title]}}},
        t["by_steps"]: {"xaxis": {"title": {"text": t["axis_step"]}}},
    }
    return Figure(case, data, layout, views)


def _traces(
    curve: Curve, t: dict[str, str], view: str, x: Sequence[Any], loss: Sequence[Any], place: Place
) -> list[dict[str, Any]]:
    """`view` names the button under which they are drawn."""
    seed = curve.repeat if curve.seed is None else curve.seed
    shared: dict[str, Any] = {"type": "scatter", "view": view, "name": f"{t['seed']} {seed}"}
    traces = [
        {**shared, "mode": "lines", "yaxis": "y2", "x": x, "y": loss, "opacity": 0.8}
        | {"line": {"color": "--tone-1", "width": 1.25}}
        | {"hovertemplate": f"{t['axis_loss']} %{{y:.4~g}}<extra>%{{fullData.name}}</extra>"}
    ]
    # The first metric above the others; one of another kind than the first has no place on its axis.
    drawn = [metric for metric in curve.metrics if metric.share == curve.metrics[0].share]
    traces += [
        _scores(curve, metric, place) | shared for metric in reversed(drawn) if _reported(curve, metric)
    ]
    if (crossing := curve.crossing) is not None and drawn:
        value = score(crossing.scores, drawn[0])
        words = t["crossed"].format(time=number.clock(crossing.end), epoch=crossing.epoch + 1)
        ring = {"symbol": "circle-open", "size": 14, "color": "--ink", "line": {"width": 2, "color": "--ink"}}
        if value is not None:
            point = {"x": [short(place(crossing))], "y": [short(_scale(drawn[0]) * value)]}
            traces.append(
                {**shared, **point, "mode": "markers", "marker": ring, "text": [name(words)]}
                | {"hovertemplate": "%{text}<extra>%{fullData.name}</extra>"}
            )
    return traces


def _scale(metric: Metric) -> float:
    return 100.0 if metric.share else 1.0


def _axis_title(metric: Metric | None) -> str:
    if metric is None:
        return ""
    return name(f"{metric.title} (%)" if metric.share else metric.title)


def _reported(curve: Curve, metric: Metric) -> list[tuple[Evaluation, float]]:
    """The evaluations that report this metric, with their values."""
    values = ((evaluation, score(evaluation.scores, metric)) for evaluation in curve.evaluations)
    return [(evaluation, value) for evaluation, value in values if value is not None]


def _scores(curve: Curve, metric: Metric, place: Place) -> dict[str, Any]:
    reported, first = _reported(curve, metric), metric == curve.metrics[0]
    return {
        "mode": "lines+markers",
        "x": [short(place(evaluation)) for evaluation, _ in reported],
        "y": [short(_scale(metric) * value) for _, value in reported],
        "opacity": 0.85 if first else 0.5,
        "line": {"color": "--tone-0", "width": 2 if first else 1.25, "dash": "solid" if first else "dot"},
        "marker": {"color": "--tone-0", "size": 5 if first else 3},
        "text": [name(f"{metric.title} {metric.text(value)}") for _, value in reported],
        "hovertemplate": "%{text}<extra>%{fullData.name}</extra>",
    }


def _target_line(metric: Metric, target: float) -> dict[str, Any]:
    height = _scale(metric) * target
    place = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": "y", "y0": height, "y1": height}
    return {**place, "line": {"color": "--muted", "width": 1.5, "dash": "dash"}}


def _target_name(metric: Metric, target: float, t: dict[str, str]) -> dict[str, Any]:
    place = {"xref": "paper", "x": 0, "xanchor": "left", "yref": "y", "y": _scale(metric) * target}
    text = t["target_line"].format(target=f"{100 * target:g} %" if metric.share else f"{target:g}")
    return {**place, "yanchor": "bottom", "text": text, "showarrow": False}
