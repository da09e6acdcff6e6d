"""ssh: OpenSSH's own client, so keys, jump hosts and ~/.ssh/config are honoured."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from trainmark.base.errors import UserError
from trainmark.launch.carrier import CarrierOption, CommandCarrier
from trainmark.launch.nodes import Node
from trainmark.launch.options import LaunchOptions

# A question at the terminal would wait for ever; an unknown host key is refused, whatever the user's own
# configuration says, unless an option here says otherwise.
ALWAYS = (
    *("-T", "-a", "-x", "-e", "none"),
    *("-o", "BatchMode=yes"),
    *("-o", "ServerAliveInterval=3", "-o", "ServerAliveCountMax=3"),
)
UNLESS_NAMED = ("StrictHostKeyChecking=yes", "ConnectTimeout=10")

CONFIG = CarrierOption("--ssh-config", "In place of ~/.ssh/config.", is_file=True)
OPTIONS = (CONFIG,)


class Ssh(CommandCarrier):
    """`options` are OpenSSH's, as after -o; they come before ours."""

    name = "ssh"
    hello_seconds = 20.0

    def __init__(
        self, nodes: Sequence[Node], config: Path | None = None, options: Sequence[str] = ()
    ) -> None:
        if not nodes:
            raise UserError("--launcher ssh needs hosts: --hosts a,b, a --hostfile or an --inventory.")
        self._nodes = tuple(nodes)
        self._config = config
        self._options = tuple(options)

    @classmethod
    def of(cls, choice: LaunchOptions) -> Ssh:
        named = choice.carrier_option(CONFIG.name)
        config = Path(named) if named else None
        return cls(choice.nodes, config, choice.options)

    def nodes(self) -> tuple[Node, ...]:
        return self._nodes

    def words(self, node: Node, command: Sequence[str]) -> list[str]:
        config = ["-F", str(self._config)] if self._config else []
        options = [word for each in (*self._options, *UNLESS_NAMED) for word in ("-o", each)]
        # One word for the shell on the far side, which is the user's and may be any.
        return ["ssh", *ALWAYS, *options, *config, "--", node.name, f"exec {shlex.join(command)}"]


CARRIER = Ssh
