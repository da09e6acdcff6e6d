"""`trainmark`: finds the command, runs it, and turns what went wrong into one sentence and an exit code."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from trainmark import __version__
from trainmark.cli.late import LateCommands
from trainmark.errors import UserError

BAD_INPUT = 2
INTERRUPTED = 130
COMMANDS = {
    "run": "trainmark.cli.run:run_command",
    "report": "trainmark.cli.report:report_command",
    "compare": "trainmark.cli.compare:compare_command",
    "read": "trainmark.cli.read:read_command",
    "list": "trainmark.cli.list:list_command",
    "show": "trainmark.cli.show:show_command",
    "query": "trainmark.cli.query:query_command",
    "audit": "trainmark.cli.audit:audit_command",
    "suites": "trainmark.cli.suites:suites_command",
    "ledger": "trainmark.cli.ledger:ledger_command",
    "export": "trainmark.cli.export:export_command",
    "frameworks": "trainmark.cli.frameworks:frameworks_command",
    "conform": "trainmark.cli.conform:conform_command",
    "fit": "trainmark.cli.fit.command:fit_command",
    "doctor": "trainmark.cli.doctor:doctor_command",
    "fabric": "trainmark.cli.fabric:fabric_command",
    "forecast": "trainmark.cli.forecast:forecast_command",
    "launch-script": "trainmark.cli.launch_script:launch_script_command",
    "data": "trainmark.cli.data.command:data_command",
    "env": "trainmark.cli.env:env_command",
}


class Commands(LateCommands):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # The reader of our output has gone (`| head`); nothing is wrong, though click would exit with 1.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0


@click.group(
    cls=Commands,
    files=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="trainmark")
def trainmark() -> None:
    """Measure how fast deep-learning training really runs, and how far the figure can be believed.

    \b
    Examples:
      trainmark run quick              a first figure in minutes
      trainmark report latest          where it stands, with intervals and doubts
      trainmark compare before after   what changed for certain
    """


def main() -> None:
    try:
        code = trainmark.main(standalone_mode=False)
    except UserError as error:
        code = _say(str(error))
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        code = 0
    except click.ClickException as error:
        code = _say(" ".join(error.format_message().split()))
    except (KeyboardInterrupt, click.Abort):
        code = INTERRUPTED
    except OSError as error:
        code = _say(f"{error.filename}: {error.strerror}." if error.filename else f"{error}.")
    sys.exit(code if isinstance(code, int) else 0)


def _say(sentence: str) -> int:
    click.echo(f"trainmark: {sentence}", err=True)
    return BAD_INPUT


if __name__ == "__main__":
    main()
