"""A stand-in for ssh: every host is an agent of this machine, so that a thousand of them fit on two cores.

`ssh` on the path is a small script that hands its standard streams to one process that has imported the agent
and forks for each of them. What runs is the real agent, started by the real launcher; only the way to the
node is missing, and the reading of the agent's own text. A host whose name begins with `dead` refuses the
connection, and one with `mute` never answers.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).resolve().parent.parent
# Only what Python has built in: an import costs more than all else that it does.
SSH = """\
#!{python} -ISE
import sys, _socket
from time import sleep
host = sys.argv[sys.argv.index("--") + 1]
if host.startswith("dead"):
    sys.exit(f"ssh: connect to host {{host}} port 22: Connection refused")
while host.startswith("mute"):
    sleep(1)
server = _socket.socket(_socket.AF_UNIX)
server.connect({server!r})
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
server.sendmsg([host.encode()], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
import posix
for number in (0, 1):
    posix.close(number)
if not server.recv(1):
    sys.stderr.write(f"Connection to {{host}} closed by remote host.\\n")
    posix._exit(255)
posix._exit(0)
"""


class LocalSsh:
    """`path` is what PATH must begin with; `agents` has a file for each host with its agent's process."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="local-ssh-")
        self.path = Path(self._folder.name)
        self.agents = self.path / "agents"
        self._server: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> LocalSsh:
        self.agents.mkdir()
        script = self.path / "ssh"
        script.write_text(SSH.format(python=sys.executable, server=str(self.path / "socket")))
        script.chmod(0o755)
        path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
        environment = {**os.environ, "PYTHONPATH": path, "TRAINMARK_HOME": str(self.path / "home")}
        self._server = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.local_ssh", str(self.path)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._server.stdout is not None
        self._server.stdout.readline()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.kill()
        self._server.communicate()
        self._folder.cleanup()

    def agent_of(self, host: str) -> int:
        """The process of the host's agent."""
        return int((self.agents / host).read_text())


def serve(folder: Path) -> None:
    """Fork an agent for each connection; ends when it is killed."""
    from trainmark.launch.agent import main as agent
    from trainmark.launch.bundle import agent_line

    boot = len(agent_line())
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "socket"))
    listener.listen(4096)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    # Nodes have processors of their own: what theirs do must not keep the harness from its turn. For that the
    # agents stay in one session too: a kernel that schedules by session (autogroup) would favour many.
    os.nice(19)
    gc.freeze()
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()
        host, streams, _, _ = socket.recv_fds(connection, 256, 3)
        if os.fork():
            connection.close()
            for stream in streams:
                os.close(stream)
            continue
        listener.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        (folder / "agents" / host.decode()).write_text(str(os.getpid()))
        left = boot
        while left and (piece := os.read(0, left)):
            left -= len(piece)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        agent.main()
        connection.sendall(b"!")
        os._exit(0)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
