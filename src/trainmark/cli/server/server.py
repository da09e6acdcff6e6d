"""`trainmark server`: what is done to a server beside serving: tokens, backups, migrations, pruning."""

from __future__ import annotations

import click

from trainmark.cli.common.late import LateCommands

COMMANDS = {
    "token": "trainmark.cli.server.token:token_command",
    "backup": "trainmark.cli.server.backup:backup_command",
    "restore": "trainmark.cli.server.backup:restore_command",
    "migrate": "trainmark.cli.server.migrate:migrate_command",
    "prune": "trainmark.cli.server.prune:prune_command",
    "audit": "trainmark.cli.server.audit:audit_command",
}


@click.group(
    "server", short_help="Tokens, backups and migrations of a server.", cls=LateCommands, files=COMMANDS
)
def server_command() -> None:
    """Manage a server: its tokens, backups, migrations and audit log. `trainmark serve` runs it.

    \b
    Examples:
      trainmark server token create ci --role push --expires 90d
      trainmark server backup monday.tar
      trainmark server restore monday.tar --data new-folder
      trainmark server migrate
      trainmark server migrate --to 0001
      trainmark server prune --dry-run
    """
