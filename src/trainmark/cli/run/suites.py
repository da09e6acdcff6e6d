"""`trainmark suites`: the suites built in."""

from __future__ import annotations

import json

import click

from trainmark.cli.common.complete import complete_built_in_suite
from trainmark.cli.common.options import json_option, workload_option


@click.group(
    "suites",
    short_help="List the built-in suites; `suites show NAME` prints one.",
    invoke_without_command=True,
)
@json_option
@click.pass_context
def suites_command(context: click.Context, as_json: bool) -> int:
    """List the suites built in; `suites show NAME` prints one as a start for your own.

    \b
    Example:
      trainmark suites show quick > mine.yaml
    """
    if context.invoked_subcommand is not None:
        return 0
    from trainmark.suite.load import built_in_names, load

    suites = [load(name) for name in built_in_names()]
    if as_json:
        click.echo(
            json.dumps([{"name": s.name, "about": s.about, "cases": len(s.cases)} for s in suites], indent=2)
        )
        return 0
    for suite in suites:
        click.echo(f"{suite.name:<23} {suite.about}")
    return 0


@suites_command.command("recipes", short_help="List the recipes that a suite can train by.")
@workload_option
@json_option
def recipes_command(workload: str, as_json: bool) -> int:
    """List the recipes that a suite can train by: `recipe: NAME`, or `run --recipe NAME`.

    \b
    Example:
      trainmark suites recipes --json
      trainmark suites recipes --workload ./my_family
    """
    from dataclasses import asdict

    from trainmark.workloads import registry

    recipes = registry.find(workload).workload.recipes()
    if as_json:
        click.echo(json.dumps([asdict(recipe) for recipe in recipes], indent=2))
        return 0
    for recipe in recipes:
        click.echo(f"{recipe.name:<14} {recipe.about}")
    return 0


@suites_command.command("show")
@click.argument("name", shell_complete=complete_built_in_suite)
def show(name: str) -> int:
    """Print suite NAME as YAML.

    \b
    Example:
      trainmark suites show quick
    """
    from trainmark.suite.load import find, read_text

    click.echo(read_text(find(name)), nl=False)
    return 0
