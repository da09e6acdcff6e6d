"""A command and a page of another package: `trainmark slowest` lists a run's trials, the slowest first."""

from collections.abc import Sequence
from pathlib import Path

import click

from trainmark.pages import number
from trainmark.store.run import find_run
from trainmark.store.trial import TrialRecord
from trainmark.view import html, terminal
from trainmark.view.blocks import Page, Sentence, Table


def slowest_page(run: str, records: Sequence[TrialRecord]) -> Page:
    """Return the trials that have a figure, each beside the fastest of its case."""
    measured = [(record.spec, record.figure.throughput) for record in records if record.figure]
    fastest: dict[str, float] = {}
    for spec, throughput in measured:
        fastest[spec.case] = max(throughput, fastest.get(spec.case, 0.0))
    measured.sort(key=lambda trial: trial[1] / fastest[trial[0].case])
    rows = [
        (
            f"{spec.case}/{spec.repeat:02d}",
            number.throughput(throughput),
            number.percent(throughput / fastest[spec.case]),
        )
        for spec, throughput in measured
    ]
    table = Table(("trial", "throughput", "of its case's fastest"), rows, frozenset({1, 2}))
    return Page(f"The slowest trials of {run}", [Sentence(f"{len(rows)} trials have a figure."), table])


@click.command("slowest")
@click.argument("run", default="latest")
@click.option("--html", "as_html", is_flag=True, help="Print the page as HTML.")
def slowest(run: str, as_html: bool) -> int:
    """List the trials of RUN, the slowest beside the others of its case first."""
    folder = find_run(run, Path("runs"))
    page = slowest_page(folder.info.name, folder.records())
    click.echo(html.render(page) if as_html else terminal.render(page), nl=False)
    return 0
