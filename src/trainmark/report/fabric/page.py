"""The fabric as one HTML file that needs no network: the map and the tables behind it."""

from __future__ import annotations

from jinja2 import Environment
from markupsafe import Markup

from trainmark.base.text import one_line
from trainmark.measure.fabric import LEAST_BANDWIDTH_SHARE, MOST_LATENCY_TIMES, FabricMeasurement, slow_parts
from trainmark.report.fabric import map as fabric_map
from trainmark.report.fabric.text import all_reduce, left_out, links, nccl_test, title, verdicts
from trainmark.report.format import number, templating
from trainmark.report.format.page import frame


def render(fabric: FabricMeasurement) -> str:
    """A page of its own."""
    page = _environment().get_template("fabric.html.j2")
    return page.render(
        **frame(),
        section=Markup(section(fabric)),
        verdicts=verdicts(slow_parts(fabric.links)),
        together=fabric.together,
        least=number.percent(LEAST_BANDWIDTH_SHARE, 0),
        most=f"{MOST_LATENCY_TIMES:g}",
    )


def section(fabric: FabricMeasurement) -> str:
    """Map and tables, for a page that has the style of the report; the caller has the heading."""
    template = _environment().get_template("fabric_section.html.j2")
    return template.render(
        map=Markup(fabric_map.render(fabric)),
        links=links(fabric, slow_parts(fabric.links)),
        left_out=left_out(fabric),
        reduced=[(title(each), all_reduce(each)) for each in fabric.all_reduces],
        nccl_tests=[nccl_test(each) for each in fabric.nccl_tests],
    )


def _environment() -> Environment:
    env = templating.environment("en", html=True)
    env.filters.update(one_line=one_line)
    return env
