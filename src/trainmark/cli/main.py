"""`trainmark`: finds the command, runs it, and turns what went wrong into one sentence and an exit code."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from trainmark import __version__
from trainmark.base.errors import UserError
from trainmark.base.text import one_line
from trainmark.cli.chinese import help_language
from trainmark.cli.crash import quiet_threads, report_crash
from trainmark.cli.terminal import discard_output, flush, visible_output

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class LateCommand(NamedTuple):
    """The module of a command, `cli.run` of `run_command`, and its line in the list of commands."""

    module: str
    help: str


class LateCommands(click.Group):
    """Commands that are imported when they are asked for: a list of them imports none that has its line.

    `groups` are the names under each heading of the help; all under one where there are none.
    """

    def __init__(
        self,
        late: Mapping[str, LateCommand],
        groups: Mapping[str, Iterable[str]] | None = None,
        **attributes: Any,
    ) -> None:
        super().__init__(**attributes)
        self.late = late
        self.groups = groups or {"Commands": late}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.late)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.late:
            return None
        module = importlib.import_module(f"trainmark.{self.late[cmd_name].module}")
        command: click.Command = getattr(module, f"{cmd_name.replace('-', '_')}_command")
        command.short_help = self.late[cmd_name].help
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        room = formatter.width - 6 - max(map(len, self.late))
        listed = {name: click.Command(name, short_help=late.help) for name, late in self.late.items()}
        for heading, names in self.groups.items():
            with formatter.section(heading):
                formatter.write_dl([(name, listed[name].get_short_help_str(room)) for name in names])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = not args or args[0].startswith("-") or args[0] in self.late
        if not known and args[0] not in (names := self.list_commands(ctx)):
            from trainmark.base.errors import nearest

            asked = " ".join([*_below_the_program(ctx), args[0]])
            raise click.UsageError(f"there is no command '{asked}'{nearest(args[0], names)}")
        return super().resolve_command(ctx, args)


def _below_the_program(ctx: click.Context) -> list[str]:
    """The commands that led here, without the program: `python -m trainmark` is one name of three words."""
    if ctx.parent is None:
        return []
    return [*_below_the_program(ctx.parent), ctx.info_name or ""]


BAD_INPUT = 2
INTERRUPTED = 130
PLUGINS = "trainmark.commands"
# The groups in which `trainmark --help` lists the commands, and where each command is.
GROUPS = {
    "Measure": {
        "run": LateCommand("cli.run", "Measure a program or a suite, and report the figure."),
        "init": LateCommand("cli.suites", "Write a suite with comments for your own program."),
        "suites": LateCommand("cli.suites", "List the built-in suites; `suites show NAME` prints one."),
        "examples": LateCommand("cli.suites", "List the examples, or write them into a folder."),
        "fit": LateCommand("cli.fit", "Find the largest batch that fits into memory."),
    },
    "Understand": {
        "explain": LateCommand(
            "explain.command", "Say where a step's time goes, why, and what would change it."
        ),
        "report": LateCommand("cli.report", "Write a run's report as HTML, Markdown, JSON and CSV."),
        "list": LateCommand("cli.list", "List the runs."),
        "show": LateCommand("cli.list", "Show one run, or one trial with the end of its log."),
        "query": LateCommand("cli.list", "Ask for trials of all runs in SQL."),
        "export": LateCommand("cli.report", "Export a run in the forms that other tools read."),
    },
    "Over time": {
        "compare": LateCommand("cli.compare", "Compare runs case by case, with intervals."),
        "history": LateCommand("cli.history", "Show results over time and mark their changes."),
        "watch": LateCommand("cli.watch", "Measure a suspected change again until it is certain."),
        "bisect": LateCommand("cli.bisect", "Find the version, commit or setting that changed the speed."),
    },
    "Team": {
        "pack": LateCommand("cli.pack", "Pack a run into one file that others can verify."),
        "verify": LateCommand("cli.pack", "Recompute every figure of a packed run; name what was changed."),
        "push": LateCommand("server.command_serve", "Send a packed run to a team's server."),
        "serve": LateCommand("server.command_serve", "Serve a team's results over time."),
        "server": LateCommand("server.command", "Tokens, backups and migrations of a server."),
    },
    "Others' results": {
        "read": LateCommand("cli.read", "Read the logs of other trainers."),
        "audit": LateCommand("audit.command", "Check published reports and logs against themselves."),
        "ledger": LateCommand("cli.ledger", "List published results and where each one stands."),
    },
    "Cluster": {
        "doctor": LateCommand("cli.machine", "Look for what would spoil a run, and say how to mend it."),
        "env": LateCommand("cli.machine", "Show this machine, its devices and its software."),
        "fabric": LateCommand("cli.fabric", "Time messages between ranks."),
        "forecast": LateCommand("forecast.command", "Forecast the throughput at sizes that were not run."),
        "launch-script": LateCommand(
            "cli.launch_script", "Write an sbatch file, or one script for each node."
        ),
    },
    "Data": {
        "frameworks": LateCommand("cli.frameworks", "Show, install and remove frameworks."),
        "conform": LateCommand("cli.conform", "Prove that each framework trains the same model."),
        "data": LateCommand("data.command", "Make, convert, check and time data sets."),
    },
}
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}


class Commands(LateCommands):
    """Trainmark's own commands, and those that other packages add by the entry point `trainmark.commands`."""

    @cached_property
    def plugins(self) -> dict[str, EntryPoint]:
        from importlib.metadata import entry_points

        return {point.name: point for point in entry_points(group=PLUGINS) if point.name not in self.late}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.late, *self.plugins]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.late or cmd_name not in self.plugins:
            return super().get_command(ctx, cmd_name)
        point = self.plugins[cmd_name]
        try:
            command: click.Command = point.load()
        except Exception as error:
            raise UserError(
                f"the command '{cmd_name}' of {_package(point)} cannot be loaded: {error}; update it."
            ) from error
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_commands(ctx, formatter)
        if self.plugins:
            with formatter.section("Commands"):  # of other packages
                formatter.write_dl([(name, _package(point)) for name, point in self.plugins.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # The reader of our output has gone (`| head`); nothing is wrong, though click would exit with 1.
            discard_output()
            return 0


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value


@click.group(
    cls=Commands,
    late=COMMANDS,
    groups=GROUPS,
    # With colours click leaves escape sequences to the output, which shows them; it has none of its own.
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "color": True},
)
@click.version_option(__version__, prog_name="trainmark")
def trainmark() -> None:
    """Measure how fast deep-learning training really runs, and how far the figure can be believed.

    \b
    Examples:
      trainmark run quick               a first figure in minutes
      trainmark run -- python train.py  your own trainer, untouched
      trainmark report latest           where it stands, with intervals and doubts
      trainmark compare before after    what changed for certain

    \b
    Completion by TAB in bash (also zsh and fish):
      eval "$(_TRAINMARK_COMPLETE=bash_source trainmark)"
    """


def main() -> None:
    with visible_output(), quiet_threads(), help_language(os.environ):
        code = _code()
        if (failed := flush()) is not None and code == 0:
            code = _say(f"standard output: {failed.strerror}.")
    sys.exit(code)


def _code() -> int:
    """Run the command; return its exit code once what went wrong has been said in one sentence."""
    try:
        code = trainmark.main(standalone_mode=False)
    except UserError as error:
        code = _say(str(error))
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        code = 0
    except click.ClickException as error:
        code = _say(error.format_message())
    except (KeyboardInterrupt, click.Abort):
        code = INTERRUPTED
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        code = _say(f"{where}{error.strerror or error}.")
    except Exception as error:  # noqa: BLE001 - nobody but a developer can read a traceback
        code = report_crash(error)
    return code if isinstance(code, int) else 0


def _say(sentence: str) -> int:
    with contextlib.suppress(OSError):  # a terminal that is gone
        click.echo(f"trainmark: {one_line(sentence)}", err=True)
    return BAD_INPUT


if __name__ == "__main__":
    main()
