"""`trainmark forecast`: the throughput to expect at sizes that were not run, and how good that is."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainmark.cli.complete import complete_run
from trainmark.cli.options import json_option, runs_option
from trainmark.cli.terminal import print_json, rendered, terminal_width

if TYPE_CHECKING:
    from trainmark.forecast.fabric import Size
    from trainmark.forecast.page import Panel
    from trainmark.forecast.validation import ErrorSummary
    from trainmark.view.blocks import Page

LARGEST = 1e18  # keeps infinity out
POSITIVE = click.FloatRange(min=0, min_open=True, max=LARGEST)
MOST_DEVICES = 65_536


class ForecastCommand(click.Command):
    """A command that says how a program comes to its forecast."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        program = args[args.index("--") + 1 :] if "--" in args else []
        if len(program) > 1:
            raise click.UsageError(
                "a forecast starts from a run; measure the program with "
                f"`trainmark run -- {shlex.join(program)}`, then `trainmark forecast latest`."
            )
        return super().parse_args(ctx, args)


@click.command("forecast", cls=ForecastCommand)
@click.argument("run", required=False, shell_complete=complete_run)
@click.option("--to", help="Topologies to forecast, as in 2n8g,4n8g; six doublings of the nodes otherwise.")
@click.option("--step", type=POSITIVE, help="Seconds a step of one device, in place of a run.")
@click.option("--batch", type=POSITIVE, help="Samples that a device takes in a step.")
@click.option("--bandwidth", type=POSITIVE, help="Bytes a second of one node's network.")
@click.option(
    "--latency", type=click.FloatRange(min=0, max=LARGEST), help="Seconds from node to node (5e-6)."
)
@click.option("--intra-bandwidth", type=POSITIVE, help="Bytes a second inside a node (130e9).")
@click.option(
    "--algorithm",
    type=click.Choice(["hierarchical", "ring", "tree"]),
    default="hierarchical",
    show_default=True,
    help="How gradients are reduced.",
)
@click.option("--model", metavar="NAME", help="Workload whose gradients are exchanged, or its folder.")
@click.option("--parameters", type=click.IntRange(min=1), help="Size of another model.")
@click.option(
    "--gradient-bytes",
    type=click.Choice(["2", "4"]),
    default="4",
    show_default=True,
    help="Bytes in which a gradient is sent.",
)
@click.option("--loader", type=POSITIVE, help="Samples a second that a node can load at most.")
@click.option(
    "--variation",
    type=click.FloatRange(min=0, max=1),
    help="How much a rank's step varies, relative; of a run it is known.",
)
@click.option("--validate", is_flag=True, help="Forecast the published series and show the errors.")
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write measured, forecast and ideal to this .svg or .html file.",
)
@runs_option
@json_option
def forecast_command(
    run: str | None,
    to: str | None,
    step: float | None,
    batch: float | None,
    validate: bool,
    plot: Path | None,
    runs: Path,
    as_json: bool,
    gradient_bytes: str,
    **asked: Any,
) -> int:
    """Forecast the throughput of RUN (the latest) at sizes that were not run, each with an 80 % interval.

    It starts from the measured cases of the run, and from its fabric where `trainmark fabric` measured it; or
    from one step, where --step and --batch are given.

    \b
    Examples:
      trainmark forecast latest --to 2n8g,4n8g,64n8g --bandwidth 12.5e9
      trainmark forecast --step 0.0421 --batch 256 --bandwidth 12.5e9 --to 1n8g,2n8g,512n8g
      trainmark forecast --step 0.0421 --batch 256 --bandwidth 12.5e9 --plot forecast.svg
      trainmark forecast --validate
    """
    from trainmark.forecast.cases import Asked, cases_of, typed_case
    from trainmark.forecast.fabric import Size
    from trainmark.forecast.forecast import forecast, forecast_record, measured
    from trainmark.forecast.page import case_panel, forecast_page
    from trainmark.forecast.validation import fit_published
    from trainmark.logs.ledger import load

    numbers = {"--step": step, "--batch": batch, **{f"--{name}": value for name, value in asked.items()}}
    if wrong := [name for name, value in numbers.items() if value != value]:
        raise click.UsageError(f"{wrong[0].replace('_', '-')} takes a number.")
    if plot and plot.suffix not in (".svg", ".html"):
        raise click.UsageError(f"a plot is an .html or an .svg file; {plot.name} is neither.")
    if validate:
        if run or step or to:
            raise click.UsageError("--validate forecasts the published series; leave the run and sizes out.")
        return _validate(plot, as_json)
    sizes = _sizes(to)
    known = Asked(gradient_bytes=int(gradient_bytes), **asked)
    if step is None:
        from trainmark.store.run import find_run

        cases = list(cases_of(find_run(run or "latest", runs), sizes, known))
    elif run or batch is None:
        raise click.UsageError("--step stands in place of a run and needs --batch.")
    else:
        usual = [Size(1 << more, 8) for more in range(7)]
        cases = [typed_case(step, batch, sizes or usual, known)]
    learned = fit_published(load())
    forecasts = [forecast(named.case, named.sizes, learned) for named in cases]
    panels = [case_panel(named, own) for named, own in zip(cases, forecasts, strict=True)]
    document = [
        {
            "case": named.name,
            "unit": f"{named.unit}/s",
            "measured": {str(one.size): one.throughput for one in measured(named.case)},
            "fabric": asdict(named.case.fabric),
            "algorithm": named.case.algorithm,
            "forecasts": [forecast_record(one) for one in own],
        }
        for named, own in zip(cases, forecasts, strict=True)
    ]
    return _show(forecast_page(panels), panels, document, plot, as_json)


def _sizes(to: str | None) -> list[Size]:
    from trainmark.forecast.fabric import Size
    from trainmark.suite.model import parse_topology

    try:
        shapes = [parse_topology(word) for word in (to or "").split(",") if word.strip()]
    except ValueError as error:
        raise click.UsageError(f"--to: {error}.") from error
    for shape in shapes:
        if shape.devices > MOST_DEVICES:
            raise click.UsageError(f"--to: {shape} has more than {MOST_DEVICES:,} devices; name fewer.")
    return [Size(shape.nodes, shape.devices_per_node) for shape in dict.fromkeys(shapes)]


def _show(shown: Page, panels: Sequence[Panel], document: Any, plot: Path | None, as_json: bool) -> int:
    from trainmark.base.files import write_text
    from trainmark.forecast.page import svg
    from trainmark.view import html

    if plot:
        write_text(plot, svg(panels) if plot.suffix == ".svg" else html.render(shown))
    if as_json:
        print_json(document)
        return 0
    click.echo(rendered(shown, "text", width=terminal_width()), nl=False)
    if plot:
        click.echo(str(plot))
    return 0


def _validate(plot: Path | None, as_json: bool) -> int:
    from trainmark.forecast.forecast import check_record
    from trainmark.forecast.page import validation_page, validation_panels
    from trainmark.forecast.validation import (
        KNOWN_PROGRAM,
        by_source,
        fit_published,
        summary,
        validate,
        validate_unseen,
        without_outliers,
    )
    from trainmark.logs.ledger import load
    from trainmark.view.message import _

    checks = validate(load())
    summaries: dict[str, ErrorSummary] = {
        _("all series"): summary(checks),
        _("without odd series"): summary(without_outliers(checks)),
        _("with the framework's other cases known"): summary(validate(load(), KNOWN_PROGRAM)),
        _("added after the model was chosen"): summary(validate_unseen(load())),
    }
    document = {
        "rows": [check_record(check) for check in checks],
        "summary": {name: asdict(errors) for name, errors in summaries.items()},
        "by_source": {source: asdict(errors) for source, errors in by_source(checks).items()},
        "coefficients": fit_published(load()).coefficients._asdict(),
    }
    return _show(validation_page(checks, summaries), validation_panels(checks), document, plot, as_json)
