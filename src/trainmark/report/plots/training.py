"""Accuracy and loss of a training, over time or over steps: every seed, the target, the crossing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from trainmark.measure.figure import Evaluation
from trainmark.report import number
from trainmark.report.document import Curve
from trainmark.report.plots.plot import Figure, Plot, name, short

HEIGHT = 520
UNITS = ((5400.0, 3600.0, "axis_time_h"), (300.0, 60.0, "axis_time_min"), (0.0, 1.0, "axis_time_s"))
ACCURACY, LOSS = (0.44, 1.0), (0.0, 0.36)

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
    targets = sorted({curve.target for curve in curves if curve.target is not None})
    layout = {
        "xaxis": {"anchor": "y2", "rangemode": "tozero", "title": {"text": t[title]}},
        "yaxis": {"domain": list(ACCURACY), "rangemode": "tozero", "title": {"text": t["axis_accuracy"]}},
        "yaxis2": {"domain": list(LOSS), "rangemode": "tozero", "title": {"text": t["axis_loss"]}},
        "shapes": [_target_line(target) for target in targets],
        "annotations": [_target_name(target, t) for target in targets],
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
    found = [
        {**shared, "mode": "lines", "yaxis": "y2", "x": x, "y": loss, "opacity": 0.8}
        | {"line": {"color": "--tone-1", "width": 1.25}}
        | {"hovertemplate": f"{t['axis_loss']} %{{y:.4~g}}<extra>%{{fullData.name}}</extra>"}
    ]
    found += [
        _accuracy(curve, which, place) | shared
        for which in ("top5", "top1")
        if any(getattr(e, which) is not None for e in curve.evaluations)
    ]
    if (crossing := curve.crossing) is not None and crossing.top1 is not None:
        told = t["crossed"].format(time=number.clock(crossing.end), epoch=crossing.epoch + 1)
        ring = {"symbol": "circle-open", "size": 14, "color": "--ink", "line": {"width": 2, "color": "--ink"}}
        found.append(
            {**shared, "mode": "markers", "x": [short(place(crossing))], "y": [short(100 * crossing.top1)]}
            | {"marker": ring, "text": [name(told)]}
            | {"hovertemplate": "%{text}<extra>%{fullData.name}</extra>"}
        )
    return found


def _accuracy(curve: Curve, which: str, place: Place) -> dict[str, Any]:
    told = [(e, getattr(e, which)) for e in curve.evaluations if getattr(e, which) is not None]
    top1 = which == "top1"
    return {
        "mode": "lines+markers",
        "x": [short(place(e)) for e, _ in told],
        "y": [short(100 * value) for _, value in told],
        "opacity": 0.85 if top1 else 0.5,
        "line": {"color": "--tone-0", "width": 2 if top1 else 1.25, "dash": "solid" if top1 else "dot"},
        "marker": {"color": "--tone-0", "size": 5 if top1 else 3},
        "text": [f"{which.replace('top', 'top-')} {number.percent(value, 2)}" for _, value in told],
        "hovertemplate": "%{text}<extra>%{fullData.name}</extra>",
    }


def _target_line(target: float) -> dict[str, Any]:
    place = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": "y", "y0": 100 * target}
    return {**place, "y1": 100 * target, "line": {"color": "--muted", "width": 1.5, "dash": "dash"}}


def _target_name(target: float, t: dict[str, str]) -> dict[str, Any]:
    place = {"xref": "paper", "x": 0, "xanchor": "left", "yref": "y", "y": 100 * target, "yanchor": "bottom"}
    return {**place, "text": t["target_line"].format(target=f"{100 * target:g}"), "showarrow": False}
