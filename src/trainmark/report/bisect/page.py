"""A bisection as one HTML page."""

from __future__ import annotations

from trainmark.base.text import one_line
from trainmark.measure.bisection import Bisection, PairedMeasurement
from trainmark.report.bisect.text import BisectionText, bounds
from trainmark.report.chart.axis import linear, rows
from trainmark.report.chart.model import Chart, Dots, Figure, Line, Mark, Panel, Plot, Whiskers, tone
from trainmark.report.format import templating
from trainmark.report.format.page import frame
from trainmark.report.format.words import Lang

ROW = 26
AIR = 0.1


def render(bisection: Bisection, lang: Lang = "en") -> str:
    text = BisectionText(bisection, lang)
    env = templating.environment(lang, html=True)
    env.filters.update(one_line=one_line)
    return env.get_template("bisect.html.j2").render(
        **frame(),
        w=text.words,
        text=text,
        command=bisection.command,
        plot=_plot(text),
        at_first=1,
    )


def _plot(text: BisectionText) -> Plot:
    """Every item that was measured beside the good side, from good to bad, with its interval."""
    bisection = text.bisection
    items: dict[tuple[int, ...], tuple[str, PairedMeasurement]] = {
        step.items: (text.name(step.name), step.measured) for step in bisection.steps if step.measured
    }
    last = (len(bisection.names),)
    items[last] = (text.name(bisection.reference.second), bisection.reference)
    shown = [items[place] for place in sorted(items)]
    marks: list[Mark] = [Line("muted", x=[1, 1], y=[-0.5, len(shown) - 0.5], dash=True)]
    sure = [(at, part) for at, (_, part) in enumerate(shown) if part.low and part.high]
    marks.append(
        Whiskers(
            tone(0),
            "0",
            at=[float(at) for at, _ in sure],
            low=[part.low for _, part in sure],
            high=[part.high for _, part in sure],
            flat=True,
        )
    )
    texts = [f"{one_line(name)}: ×{part.ratio:.3f} {bounds(part)}" for name, part in shown]
    ratios = [part.ratio for _, part in shown]
    marks.append(
        Dots(
            tone(0), "0", x=ratios, y=[float(at) for at in range(len(shown))], texts=texts, name="", radius=4
        )
    )
    reach = [1.0, *ratios, *(bound for _, part in sure for bound in (part.low, part.high) if bound)]
    air = AIR * (max(reach) - min(reach)) or AIR
    span = (max(0.0, min(reach) - air), max(reach) + air)
    across = linear([], text.words["chart_axis"], bounds=span, most=9)
    panel = Panel(rows([one_line(name)[:40] for name, _ in shown]), marks, len(shown) * ROW)
    return Plot("ratios", [Figure("", {"": Chart(across, [panel])})], [bisection.reference.second])
