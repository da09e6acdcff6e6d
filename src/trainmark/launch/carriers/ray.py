"""Ray: nodes reserved by a placement group on a running cluster, or on one that is started for the run."""

from __future__ import annotations

import contextlib
import json
import secrets
import select
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from trainmark.base.errors import UserError
from trainmark.launch.carrier import CarrierOption, end_with_input
from trainmark.launch.nodes import Node
from trainmark.launch.options import LaunchOptions

BRIDGE = Path(__file__).with_name("ray_bridge.py")
JOIN_SECONDS = 330.0
END_SECONDS = 10.0

OPTIONS = (
    CarrierOption("--ray-address", "A running Ray cluster, HOST:PORT; without it one is started here."),
    CarrierOption("--ray-python", "The Python that has Ray, where it is not Trainmark's own."),
)


class Ray:
    """All that knows Ray runs in a process of its own, by a Python that has it."""

    name = "ray"
    hello_seconds = 45.0

    def __init__(self, nodes: Sequence[Node], count: int, address: str | None, python: str | None) -> None:
        self._wanted = tuple(nodes)
        self._question = {"address": address, "count": count, "hosts": [node.name for node in nodes]}
        self._python = python or sys.executable
        self._bridge: subprocess.Popen[bytes] | None = None
        self._folder = Path(tempfile.mkdtemp(prefix="trainmark-ray-"))
        self._nodes: tuple[Node, ...] = ()
        self._index: dict[str, int] = {}

    @classmethod
    def of(cls, choice: LaunchOptions) -> Ray:
        address, python = (choice.carrier_option(option.name) for option in OPTIONS)
        return cls(choice.nodes, choice.count or 1, address, python)

    def nodes(self) -> tuple[Node, ...]:
        if self._bridge is None:
            self._nodes = self._join()
            self._index = {node.name: index for index, node in enumerate(self._nodes)}
        return self._nodes

    def reach(self, node: Node, command: Sequence[str]) -> SocketChannel:
        self.nodes()
        return SocketChannel(self._folder, self._index[node.name], command)

    def shown(self, node: Node, command: Sequence[str]) -> str:
        return f"(a Ray actor in its bundle of the placement group) {shlex.join(command)}"

    def why_lost(self, node: Node) -> tuple[str, str] | None:
        return None

    def gone(self) -> str | None:
        if self._bridge is not None and self._bridge.poll() is not None:
            return "the connection to Ray was lost"
        return None

    def close(self) -> None:
        if self._bridge is not None:
            bridge, self._bridge = self._bridge, None
            end_with_input(bridge, END_SECONDS)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _join(self) -> tuple[Node, ...]:
        errors = self._folder / "errors"
        program = BRIDGE.read_text(encoding="utf-8")
        with errors.open("wb") as errors_file:
            self._bridge = subprocess.Popen(
                # As text: beside the file lies this one, which the bridge would take for Ray.
                [self._python, "-c", program, str(self._folder), json.dumps(self._question)],
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors_file,
                start_new_session=True,
            )
        assert self._bridge.stdout is not None
        line = b""
        if select.select([self._bridge.stdout], [], [], JOIN_SECONDS)[0]:
            line = self._bridge.stdout.readline()
        if not line:
            error_lines = errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            self.close()
            raise UserError(_refusal(self._python, error_lines[-1] if error_lines else "it did not answer"))
        given = {name: node for node in self._wanted for name in (node.name, node.address)}
        return tuple(
            given.get(each["name"]) or Node(each["name"], address=each["address"])
            for each in json.loads(line)["nodes"]
        )


class SocketChannel:
    """A way through the bridge, which writes down why it ended."""

    pid = None

    def __init__(self, folder: Path, index: int, command: Sequence[str]) -> None:
        name = f"visit-{secrets.token_hex(8)}"
        self._reason = folder / name
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(folder / "socket"))
        asked = {"node": index, "name": name, "command": list(command)}
        self._socket.sendall(json.dumps(asked).encode() + b"\n")
        self.incoming = self.outgoing = self._socket.fileno()

    def last_words(self) -> str:
        deadline = time.monotonic() + 1.0
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                return self._reason.read_text(encoding="utf-8")
            time.sleep(0.05)
        return ""

    def close(self, patient: bool = True) -> int | None:
        self._socket.close()
        return None


def _refusal(python: str, reason: str) -> str:
    if "No module named 'ray'" in reason:
        return f"{python} has no Ray; `pip install ray==2.60.0` there, or name another with --ray-python."
    return f"Ray cannot be used: {reason.rstrip('.')}."


CARRIER = Ray
