"""`trainmark`: finds the command, runs it, and turns what went wrong into one sentence and an exit code."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any

import click

from trainmark import __version__
from trainmark.cli.common.chinese import help_language
from trainmark.cli.common.crash import quiet_threads, report_crash
from trainmark.cli.common.late import LateCommands
from trainmark.cli.common.terminal import discard_output, flush, visible_output
from trainmark.errors import UserError
from trainmark.visible import one_line

BAD_INPUT = 2
INTERRUPTED = 130
# The groups in which `trainmark --help` lists the commands, and where each command is.
GROUPS = {
    "Measure": {
        "run": "trainmark.cli.run.run:run_command",
        "init": "trainmark.cli.run.init:init_command",
        "suites": "trainmark.cli.run.suites:suites_command",
        "examples": "trainmark.cli.run.examples:examples_command",
        "fit": "trainmark.cli.fit.command:fit_command",
    },
    "Understand": {
        "explain": "trainmark.cli.explain.command:explain_command",
        "report": "trainmark.cli.results.report:report_command",
        "list": "trainmark.cli.results.list:list_command",
        "show": "trainmark.cli.results.show:show_command",
        "query": "trainmark.cli.results.query:query_command",
        "export": "trainmark.cli.results.export:export_command",
    },
    "Compare": {
        "compare": "trainmark.cli.results.compare:compare_command",
        "history": "trainmark.cli.history.history:history_command",
        "watch": "trainmark.cli.history.watch:watch_command",
        "bisect": "trainmark.cli.bisect.bisect:bisect_command",
    },
    "Share with a team": {
        "pack": "trainmark.cli.history.pack:pack_command",
        "verify": "trainmark.cli.history.verify:verify_command",
        "push": "trainmark.cli.server.push:push_command",
        "serve": "trainmark.cli.server.serve:serve_command",
        "server": "trainmark.cli.server.server:server_command",
    },
    "Results of others": {
        "read": "trainmark.cli.published.read:read_command",
        "audit": "trainmark.cli.published.audit:audit_command",
        "ledger": "trainmark.cli.published.ledger:ledger_command",
    },
    "Machines and clusters": {
        "doctor": "trainmark.cli.machine.doctor:doctor_command",
        "env": "trainmark.cli.machine.env:env_command",
        "fabric": "trainmark.cli.machine.fabric:fabric_command",
        "forecast": "trainmark.cli.results.forecast:forecast_command",
        "launch-script": "trainmark.cli.run.launch_script:launch_script_command",
    },
    "Frameworks and data": {
        "frameworks": "trainmark.cli.frameworks.frameworks:frameworks_command",
        "conform": "trainmark.cli.frameworks.conform:conform_command",
        "data": "trainmark.cli.data.command:data_command",
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
