"""One host of the bed: namespaces of its own for network, processes, mounts and name, and an sshd."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from host_network import HostNetwork, UnavailableError, must, program

SCRATCH = "/run/trainmark-host"

# How the sshd that waits for connections calls itself.
LISTENER = "[listener]"

# What a process may answer that has ended meanwhile, or was never ours.
GONE = (ProcessLookupError, FileNotFoundError, PermissionError)

# Each host has its own /run, /dev/shm, and a /sys that shows its own interfaces; all else is shared. The
# holder ignores SIGCHLD, so that the orphans it inherits as process 1 leave no zombies.
FURNISH = f"""
set -e
hostname "$1"
mount --bind "$2" /etc/hosts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=755,size=512m tmpfs /run
mkdir -p /run/sshd /run/lock /run/cgroup {SCRATCH}
mount -t tmpfs -o mode=755,size="$3" tmpfs {SCRATCH}
mount --rbind /sys/fs/cgroup /run/cgroup
mount -t sysfs sysfs /sys
mount --rbind /run/cgroup /sys/fs/cgroup
umount -l /run/cgroup
echo ready
trap '' CHLD
exec sleep infinity
"""

SSHD = """\
ListenAddress {address}
Port 22
HostKey {folder}/host_key
PidFile none
AuthorizedKeysFile {authorized}
# The bed's folder lies under one that everybody may write to.
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
SetEnv TRAINMARK_SCRATCH={scratch} TRAINMARK_HOME={scratch}/home
"""


class Process(NamedTuple):
    """A process of a host, by the number that it has there."""

    pid: int
    command: str


class _Entry(NamedTuple):
    outer: int
    inner: int
    executable: str
    command: str


class Host:
    """Off when made; `power_on` and `power_off` may follow each other any number of times."""

    def __init__(self, name: str, index: int, folder: Path, network: HostNetwork) -> None:
        self.name = name
        self.index = index
        self.folder = folder / name
        self.network = network
        self.address = network.address(index)
        self.sshd = str(Path(program("sshd", "openssh-server")).resolve())
        self.infrastructure: list[Callable[[str, str], bool]] = []
        self.started: list[subprocess.Popen[Any]] = []
        self.holder: subprocess.Popen[str] | None = None
        self.pid = 0
        self.folder.mkdir()
        must("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", self.folder / "host_key")

    @property
    def public_key(self) -> str:
        return " ".join((self.folder / "host_key.pub").read_text().split()[:2])

    def power_on(self, scratch_size: str) -> None:
        """Like a reboot: the scratch is empty, nothing runs but sshd."""
        spaces = ["--net", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
        furnish = ["sh", "-c", FURNISH, "sh", self.name, str(self.folder.parent / "hosts"), scratch_size]
        self.holder = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", *spaces, *furnish],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.holder.stdout is not None and self.holder.stderr is not None
        if self.holder.stdout.readline() != "ready\n":
            raise UnavailableError(f"a host cannot be made here: {self.holder.stderr.read().strip()}")
        self.pid = psutil.Process(self.holder.pid).children()[0].pid
        self.network.plug(self.index, self.pid, self.enter())
        self.start_sshd()

    def power_off(self) -> None:
        """As if the plug were pulled: no goodbye reaches anybody."""
        self.network.unplug(self.index)
        if self.pid:
            with suppress(*GONE):
                os.kill(self.pid, signal.SIGKILL)
        if self.holder:
            if not self.pid:
                self.holder.kill()
            self.holder.communicate()
        for process in self.started:
            process.wait()
        self.started.clear()
        self.holder, self.pid = None, 0

    def enter(self) -> list[str]:
        """What to put before a command that is to run on this host, and to end with the one who asked."""
        spaces = ["nsenter", "-t", str(self.pid), "-n", "-m", "-u", "-p", "--"]
        return [*spaces, "setpriv", "--pdeathsig", "KILL", "--"]

    def start(self, argv: list[str], log: Path) -> None:
        """A daemon that belongs to the bed; it goes down with the host."""
        with log.open("ab") as output:
            process = subprocess.Popen(
                [*self.enter(), *argv], stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        self.started.append(process)

    def start_sshd(self) -> None:
        """Returns when it listens; does nothing where it does already."""
        if self.listens():
            return
        config = self.folder / "sshd_config"
        authorized = self.folder.parent / "client_key.pub"
        names = {"address": self.address, "folder": self.folder, "authorized": authorized}
        config.write_text(SSHD.format(**names, scratch=SCRATCH))
        log = self.folder / "sshd.log"
        log.write_text("")
        self.start([self.sshd, "-D", "-e", "-f", str(config)], log)
        if not wait_until(lambda: "Server listening" in log.read_text(), 10):
            raise UnavailableError(f"sshd does not start: {log.read_text().strip()}")

    def listens(self) -> bool:
        return bool(self.pids(lambda executable, command: executable == self.sshd and LISTENER in command))

    def kill_sshd(self) -> None:
        """The listener and every connection."""
        self.kill_all(lambda executable, _: executable == self.sshd)

    def pids(self, which: Callable[[str, str], bool]) -> list[int]:
        """Of the processes for which this holds, by executable and command line."""
        return [entry.inner for entry in self._entries() if which(entry.executable, entry.command)]

    def kill_all(self, which: Callable[[str, str], bool]) -> None:
        """SIGKILL, until none is left."""

        def none_left() -> bool:
            pids = self.pids(which)
            for pid in pids:
                with suppress(*GONE):
                    self.kill(pid)
            return not pids

        if not wait_until(none_left, 10):
            raise RuntimeError(f"what runs on {self.name} does not die")

    def kill(self, pid: int, number: int = signal.SIGKILL) -> None:
        for entry in self._entries():
            if entry.inner == pid:
                os.kill(entry.outer, number)
                return
        raise ProcessLookupError(f"{self.name} has no process {pid}")

    def processes(self) -> list[Process]:
        return [
            Process(entry.inner, entry.command)
            for entry in self._entries()
            if entry.executable != self.sshd
            and not any(is_ours(entry.executable, entry.command) for is_ours in self.infrastructure)
        ]

    def connections(self) -> list[Process]:
        """The sshd processes that serve a connection."""
        return [
            Process(entry.inner, entry.command)
            for entry in self._entries()
            if entry.executable == self.sshd and LISTENER not in entry.command
        ]

    def _entries(self) -> Iterator[_Entry]:
        """All that runs on the host, but for its process 1 and what has ended."""
        if not self.pid:
            return
        here = namespace(self.pid)
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit() or int(folder.name) == self.pid:
                continue
            with suppress(*GONE):
                if namespace(int(folder.name)) != here:
                    continue
                status = (folder / "status").read_text()
                inner = status.split("NSpid:")[1].split("\n")[0].split()[-1]
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                executable = str((folder / "exe").readlink()).removesuffix(" (deleted)")
                yield _Entry(int(folder.name), int(inner), executable, command.strip())


def wait_until(true: Callable[[], bool], limit: float) -> bool:
    """Whether it became true within so many seconds."""
    deadline = time.monotonic() + limit
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def namespace(pid: int) -> str:
    return str(Path(f"/proc/{pid}/ns/pid").readlink())
