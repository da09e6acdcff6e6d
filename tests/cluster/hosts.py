"""Four hosts on one machine, node1 to node4, that ssh reaches and that can be harmed one by one.

Numbers of processes are those that the host itself sees.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from host_network import HostNetwork, UnavailableError, must, program
from one_host import SCRATCH, Host, Process

CLIENT = """\
Host {name}
  HostName {address}
  HostKeyAlias {name}
"""

CLIENT_FOR_ALL = """\
Host *
  User root
  Port 22
  IdentityFile {folder}/client_key
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  BatchMode yes
  ConnectTimeout 5
"""


class Hosts:
    """A bed of hosts; a context manager that leaves nothing behind."""

    scratch = Path(SCRATCH)

    def __init__(self, count: int = 4, scratch_size: str = "200m") -> None:
        if os.name != "posix" or os.geteuid() != 0:
            raise UnavailableError("hosts in network namespaces need root")
        for name, package in (
            ("unshare", "util-linux"),
            ("nsenter", "util-linux"),
            ("ssh", "openssh-client"),
        ):
            program(name, package)
        self.network = HostNetwork()
        self.names = [f"node{index}" for index in range(1, count + 1)]
        self.addresses = {name: self.network.address(index) for index, name in enumerate(self.names, 1)}
        self.scratch_size = scratch_size
        # Short, since it holds sockets; what a killed bed of the same number left there goes.
        self.folder = Path(tempfile.gettempdir()) / f"tmk-bed-{self.network.number}"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(mode=0o755)
        self.ssh_config = self.folder / "ssh_config"
        self.known_hosts = self.folder / "known_hosts"
        self.names_file = self.folder / "hosts"
        self.hosts: dict[str, Host] = {}

    @property
    def network_cidr(self) -> str:
        return self.network.cidr

    @property
    def harness_address(self) -> str:
        """This machine, as the hosts see it."""
        return self.network.gateway

    def __enter__(self) -> Hosts:
        try:
            self._write_names()
            self.network.open()
            for index, name in enumerate(self.names, 1):
                self.hosts[name] = Host(name, index, self.folder, self.network)
            self._write_client()
            for host in self.hosts.values():
                host.power_on(self.scratch_size)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for host in self.hosts.values():
            host.power_off()
        self.network.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def command(self, name: str, argv: list[str]) -> list[str]:
        return [*self.hosts[name].enter(), *argv]

    def run(self, name: str, argv: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        options = {"capture_output": True, "text": True, "timeout": 60, **options}
        return subprocess.run(self.command(name, argv), **options)

    def ssh(self, name: str, command: str, **options: Any) -> subprocess.CompletedProcess[str]:
        options = {"capture_output": True, "text": True, "timeout": 60, **options}
        return subprocess.run(["ssh", "-F", str(self.ssh_config), name, command], **options)

    def processes(self, name: str) -> list[Process]:
        """All that runs there and is neither the bed's own nor an sshd that serves a connection."""
        return self.hosts[name].processes()

    def connections(self, name: str) -> list[Process]:
        return self.hosts[name].connections()

    def kill(self, name: str, pid: int, number: int = signal.SIGKILL) -> None:
        self.hosts[name].kill(pid, number)

    def belongs_to_the_bed(self, is_ours: Callable[[str, str], bool]) -> None:
        """Leave out of `processes` those of which this holds, by executable and command line."""
        for host in self.hosts.values():
            host.infrastructure.append(is_ours)

    def power_off(self, name: str) -> None:
        self.hosts[name].power_off()

    def power_on(self, name: str) -> None:
        self.hosts[name].power_on(self.scratch_size)

    def link_down(self, name: str) -> None:
        self.network.down(self.hosts[name].index)

    def link_up(self, name: str) -> None:
        self.network.up(self.hosts[name].index)

    def delay(self, name: str, ms: float = 200, loss: float = 1) -> None:
        """Each packet to that host comes so much later, and so many per cent never."""
        host = self.hosts[name]
        try:
            self.network.slow(host.index, host.enter(), ms, loss)
        except UnavailableError as reason:
            pytest.skip(str(reason))

    def undelay(self, name: str) -> None:
        self.network.quicken(self.hosts[name].index)

    def kill_sshd(self, name: str) -> None:
        self.hosts[name].kill_sshd()

    def start_sshd(self, name: str) -> None:
        self.hosts[name].start_sshd()

    def fill_disk(self, name: str) -> None:
        """Not a byte is left in the scratch; nothing else is touched."""
        for block in ("1M", "1"):
            self.run(name, ["sh", "-c", f"dd if=/dev/zero bs={block} >> {SCRATCH}/.filler 2>/dev/null"])

    def free_disk(self, name: str) -> None:
        self.run(name, ["rm", "-f", f"{SCRATCH}/.filler"], check=True)

    def heal(self) -> None:
        """Every host is up, reached, quick, and has room again."""
        for name, host in self.hosts.items():
            if not host.pid:
                self.power_on(name)
            self.undelay(name)
            self.link_up(name)
            self.free_disk(name)
            self.start_sshd(name)
        self.network.forget(host.enter() for host in self.hosts.values())

    def _write_names(self) -> None:
        lines = ["127.0.0.1 localhost", f"{self.harness_address} harness {socket.gethostname()}"]
        lines += [f"{address} {name}" for name, address in self.addresses.items()]
        self.names_file.write_text("\n".join(lines) + "\n")

    def _write_client(self) -> None:
        must("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", self.folder / "client_key")
        blocks = [CLIENT.format(name=name, address=address) for name, address in self.addresses.items()]
        self.ssh_config.write_text("".join([*blocks, CLIENT_FOR_ALL.format(folder=self.folder)]))
        known = [f"{name},{host.address} {host.public_key}\n" for name, host in self.hosts.items()]
        self.known_hosts.write_text("".join(known))
