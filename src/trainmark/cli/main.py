"""`trainmark`: finds the command, runs it, and turns what went wrong into one sentence and an exit code."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import click

from trainmark import __version__
from trainmark.base.errors import UserError
from trainmark.base.text import one_line
from trainmark.cli.chinese import help_language
from trainmark.cli.crash import quiet_threads, report_crash
from trainmark.cli.terminal import discard_output, flush, visible_output


class LateCommands(click.Group):
    """`files` gives for each name where the command is, as in `trainmark.cli.run:run_command`.

    `groups` are the names under each heading of the help; all under one where there are none.
    """

    def __init__(
        self, files: Mapping[str, str], groups: Mapping[str, Iterable[str]] | None = None, **attributes: Any
    ) -> None:
        super().__init__(**attributes)
        self.files = files
        self.groups = groups or {"Commands": files}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.files)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.files:
            return None
        module, _, name = self.files[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        room = formatter.width - 6 - max(map(len, self.files))
        for heading, names in self.groups.items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(heading):
                formatter.write_dl([(name, each.get_short_help_str(room)) for name, each in commands if each])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in self.files:
            from trainmark.base.errors import nearest

            asked = " ".join([*_below_the_program(ctx), args[0]])
            raise click.UsageError(f"there is no command '{asked}'{nearest(args[0], self.files)}")
        return super().resolve_command(ctx, args)


def _below_the_program(ctx: click.Context) -> list[str]:
    """The commands that led here, without the program: `python -m trainmark` is one name of three words."""
    if ctx.parent is None:
        return []
    return [*_below_the_program(ctx.parent), ctx.info_name or ""]


BAD_INPUT = 2
INTERRUPTED = 130
# The groups in which `trainmark --help` lists the commands, and where each command is.
GROUPS = {
    "Measure": {
        "run": "trainmark.cli.run:run_command",
        "init": "trainmark.cli.suites:init_command",
        "suites": "trainmark.cli.suites:suites_command",
        "examples": "trainmark.cli.suites:examples_command",
        "fit": "trainmark.cli.fit:fit_command",
    },
    "Understand": {
        "explain": "trainmark.cli.explain:explain_command",
        "report": "trainmark.cli.report:report_command",
        "list": "trainmark.cli.list:list_command",
        "show": "trainmark.cli.list:show_command",
        "query": "trainmark.cli.list:query_command",
        "export": "trainmark.cli.report:export_command",
    },
    "Compare": {
        "compare": "trainmark.cli.compare:compare_command",
        "history": "trainmark.cli.history:history_command",
        "watch": "trainmark.cli.watch:watch_command",
        "bisect": "trainmark.cli.bisect:bisect_command",
    },
    "Share with a team": {
        "pack": "trainmark.cli.pack:pack_command",
        "verify": "trainmark.cli.pack:verify_command",
        "push": "trainmark.cli.serve:push_command",
        "serve": "trainmark.cli.serve:serve_command",
        "server": "trainmark.cli.server:server_command",
    },
    "Results of others": {
        "read": "trainmark.cli.read:read_command",
        "audit": "trainmark.cli.audit:audit_command",
        "ledger": "trainmark.cli.ledger:ledger_command",
    },
    "Machines and clusters": {
        "doctor": "trainmark.cli.machine:doctor_command",
        "env": "trainmark.cli.machine:env_command",
        "fabric": "trainmark.cli.fabric:fabric_command",
        "forecast": "trainmark.cli.forecast:forecast_command",
        "launch-script": "trainmark.cli.launch_script:launch_script_command",
    },
    "Frameworks and data": {
        "frameworks": "trainmark.cli.frameworks:frameworks_command",
        "conform": "trainmark.cli.conform:conform_command",
        "data": "trainmark.cli.data:data_command",
    },
}
COMMANDS = {name: place for group in GROUPS.values() for name, place in group.items()}


class Commands(LateCommands):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # The reader of our output has gone (`| head`); nothing is wrong, though click would exit with 1.
            discard_output()
            return 0


@click.group(
    cls=Commands,
    files=COMMANDS,
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
