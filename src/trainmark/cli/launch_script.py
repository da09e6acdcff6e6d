"""`trainmark launch-script`: the same trials as files to hand in or to start by hand on each node."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmark.base.errors import UserError
from trainmark.cli.complete import complete_suite
from trainmark.cli.options import cluster_options, runs_option
from trainmark.cli.terminal import terminal_width

if TYPE_CHECKING:
    from trainmark.launch.options import LaunchOptions
    from trainmark.suite.load import Override

DONE, FAILED = 0, 1


@click.command("launch-script")
@click.argument("suite", default="", shell_complete=complete_suite)
@runs_option
@click.option("--name", help="Name the run; by default the suite's name and the time.")
@click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override any field of the suite."
)
@click.option("--topology", help="Short for --set topology=…; 2n8g is 2 nodes with 8 devices each.")
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="The sbatch file; by default printed."
)
@click.option("--collect", metavar="RUN", help="Take the figures of a run whose scripts have ended.")
@cluster_options
def launch_script_command(
    suite: str,
    runs: Path,
    name: str | None,
    overrides: tuple[str, ...],
    topology: str | None,
    output: Path | None,
    collect: str | None,
    choice: LaunchOptions,
) -> int:
    """Write an sbatch file, or one script for each node, for sites where nothing may be started from outside.

    The scripts of the nodes lie in the run's folder, which all nodes must see at the same path; start them at
    about the same time, then take the figures with --collect.

    \b
    Examples:
      trainmark launch-script resnet50-dlperf --launcher slurm --output dlperf.sbatch
      trainmark launch-script resnet50-dlperf --hosts node1,node2 --interface eth0 --name by-hand
      trainmark launch-script --collect by-hand
    """
    from trainmark.suite.load import Override

    changes = [Override(text, f"--set {text}") for text in overrides]
    changes += [Override(f"topology={topology}", f"--topology {topology}")] if topology else []
    if collect is not None:
        return _collect(collect, runs)
    if choice.launcher == "slurm":
        return _sbatch(suite or "quick", changes, runs, name, output, choice)
    if not choice.nodes:
        raise UserError("name the nodes with --hosts, --hostfile or --inventory, or give --launcher slurm.")
    return _node_scripts(suite or "quick", changes, runs, name, choice)


def _sbatch(
    suite: str,
    changes: Sequence[Override],
    runs: Path,
    name: str | None,
    output: Path | None,
    choice: LaunchOptions,
) -> int:
    from trainmark.runner.launch_scripts import sbatch
    from trainmark.suite import load

    asked = load.load(suite, changes)
    nodes = choice.count or max(case.topology.nodes for case in asked.cases)
    words = [str(load.find(suite).resolve()) if Path(suite).is_file() else suite]
    words += [word for change in changes for word in ("--set", change.text)]
    words += ["--runs", str(runs.absolute()), *(["--name", name] if name else [])]
    words += ["--interface", choice.interface] if choice.interface else []
    words += [word for variable in choice.passed for word in ("--pass-env", variable)]
    text = sbatch(words, nodes, choice.options)
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")
        click.echo(f"sbatch {output}")
    return DONE


def _node_scripts(
    suite: str, changes: Sequence[Override], runs: Path, name: str | None, choice: LaunchOptions
) -> int:
    from trainmark.runner.launch_scripts import prepare_unseen, write_node_scripts
    from trainmark.runner.run import new_run
    from trainmark.suite import load

    prepared = prepare_unseen(lambda here: load.load(suite, changes, here), choice.nodes)
    run = new_run(prepared, runs, name, f"trainmark launch-script {suite}")
    written = write_node_scripts(run, prepared, choice)
    for skip in prepared.plan.skipped:
        click.echo(f"skipped {skip.case.slug}: {skip.reason}", err=True)
    for node, path in written.items():
        click.echo(f"{node}: sh {path.absolute()}")
    click.echo(f"then: trainmark launch-script --collect {run.path}")
    return DONE


def _collect(name: str, runs: Path) -> int:
    from trainmark.cli.report import render, write_reports
    from trainmark.runner.launch_scripts import collect, prepare_collected
    from trainmark.runner.run import save_reference_rates
    from trainmark.store.report import report_of
    from trainmark.store.run import find_run

    run = find_run(name, runs)
    records = collect(run, prepare_collected(run))
    if not records:
        raise UserError(f"no trial of {run.path} has ended since; start its scripts on every node first.")
    save_reference_rates(run, lambda text: click.echo(text, err=True))
    report = report_of(run)
    written = write_reports(report, run.path)
    click.echo(render(report, "text", "en", terminal_width()))
    click.echo("\n".join(f"{kind:<9} {path}" for kind, path in written.items()))
    return FAILED if any(record.figure is None for record in records) else DONE
