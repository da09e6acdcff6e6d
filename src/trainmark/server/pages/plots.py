"""Charts of the pages that no report has: a machine's health over its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trainmark.report.chart.axis import linear
from trainmark.report.chart.model import Bars, Chart, Dots, Line, Mark, Panel
from trainmark.report.format import number
from trainmark.report.history.time_axis import time_axis
from trainmark.server.database.queries.rows import Health

HEIGHT, FAILED_HEIGHT = 220, 60
LEAST_REACH = 5.0
BAR_SHARE = 0.006


def health_chart(health: Sequence[Health], t: Mapping[str, str]) -> Chart | None:
    """Draw each run's median share of the best results, and below it the trials that failed."""
    known = [run for run in health if run.of_best is not None]
    if not known:
        return None
    across = time_axis([run.time for run in health])
    values = [100 * (run.of_best or 0.0) for run in known]
    low = min(100 - LEAST_REACH, min(values))
    marks: list[Mark] = [
        Line("t0", opacity=0.35, x=[run.time for run in known], y=values, width=1.5),
        *(_dots(known, doubtful, t) for doubtful in (False, True)),
    ]
    bounds = (max(0.0, low - 0.06 * (100 - low)), 100 + 0.06 * (100 - low))
    panels = [Panel(linear([], t["axis_of_best"], " %", bounds, 6), marks, HEIGHT)]
    if any(run.failed for run in health):
        failed = [run for run in health if run.failed]
        width = BAR_SHARE * (across.high - across.low)
        bars = Bars(
            "bad",
            x=[run.time for run in failed],
            y=[float(run.failed) for run in failed],
            texts=[f"{run.run}: {run.failed}" for run in failed],
            width=width,
        )
        most = max(run.failed for run in failed)
        panels.append(Panel(linear([0, most], t["axis_failed"], most=3), [bars], FAILED_HEIGHT))
    return Chart(across, panels)


def _dots(known: Sequence[Health], doubtful: bool, t: Mapping[str, str]) -> Dots:
    own = [run for run in known if bool(run.doubts) == doubtful]
    return Dots(
        "t0",
        x=[run.time for run in own],
        y=[100 * (run.of_best or 0.0) for run in own],
        texts=[f"{run.run}: {number.percent(run.of_best)} {t['of_its_best']}" for run in own],
        links=[f"/runs/{run.run_uuid}" for run in own],
        shape="ring" if doubtful else "dot",
        radius=4,
    )
