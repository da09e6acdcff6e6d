"""The wire between the hosts: a bridge on this machine, one cable to each host."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

# Debian keeps these where only root's own shell looks.
SEARCH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"])
RELAY = Path(__file__).with_name("slow_cable.py")
NETWORKS = 64


class UnavailableError(Exception):
    """A part of the bed cannot be had on this machine; the text is the reason of the skip."""


def program(name: str, package: str) -> str:
    """The full path of a program, or the Debian package that is missing."""
    if executable := shutil.which(name, path=SEARCH):
        return executable
    raise UnavailableError(f"there is no {name} here (Debian's {package})")


def must(*argv: str | Path) -> str:
    """What a command printed; what it complained of makes the bed unavailable."""
    done = subprocess.run([str(part) for part in argv], capture_output=True, text=True)
    if done.returncode:
        raise UnavailableError(f"`{' '.join(map(str, argv))}` failed: {done.stderr.strip()}")
    return done.stdout


class HostNetwork:
    """10.77.N.0/24, where N is free: this machine has .254, the hosts have .1, .2 and so on."""

    def __init__(self) -> None:
        self.ip = program("ip", "iproute2")
        self.number, self.claim = _claim()
        self.bridge = f"tmk{self.number}"
        self.relays: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def cidr(self) -> str:
        return f"10.77.{self.number}.0/24"

    @property
    def gateway(self) -> str:
        return f"10.77.{self.number}.254"

    def address(self, index: int) -> str:
        return f"10.77.{self.number}.{index}"

    def open(self) -> None:
        self._clear()
        must(self.ip, "link", "add", self.bridge, "type", "bridge")
        must(self.ip, "address", "add", f"{self.gateway}/24", "dev", self.bridge)
        must(self.ip, "link", "set", self.bridge, "up")

    def cable(self, index: int) -> str:
        """The name of this machine's end; the host's end is its eth0."""
        return f"{self.bridge}n{index}"

    def plug(self, index: int, pid: int, enter: list[str]) -> None:
        """Connect the network namespace of `pid`; `enter` runs a command in it."""
        cable = self.cable(index)
        # A card keeps its address when its host is rebooted; the others remember it.
        card = f"02:54:4d:00:{self.number:02x}:{index:02x}"
        peer = ["peer", "name", "eth0", "address", card, "netns", str(pid)]
        must(self.ip, "link", "add", cable, "type", "veth", *peer)
        must(self.ip, "link", "set", cable, "master", self.bridge, "up")
        must(*enter, self.ip, "link", "set", "lo", "up")
        must(*enter, self.ip, "address", "add", f"{self.address(index)}/24", "dev", "eth0")
        must(*enter, self.ip, "link", "set", "eth0", "up")

    def unplug(self, index: int) -> None:
        self.quicken(index)
        subprocess.run([self.ip, "link", "delete", self.cable(index)], capture_output=True)

    def down(self, index: int) -> None:
        must(self.ip, "link", "set", self.cable(index), "down")

    def up(self, index: int) -> None:
        must(self.ip, "link", "set", self.cable(index), "up")

    def forget(self, hosts: Iterable[list[str]]) -> None:
        """Whom this machine and the hosts could not reach: else they hold on to that for a while after the
        cable is back. `hosts` are what runs a command in each.
        """
        must(self.ip, "neighbour", "flush", "dev", self.bridge)
        for enter in hosts:
            must(*enter, self.ip, "neighbour", "flush", "dev", "eth0")

    def slow(self, index: int, enter: list[str], ms: float, loss: float) -> None:
        """Delay what goes to the host, and lose some of it: by the kernel if it can, else by a relay."""
        self.quicken(index)
        cable = self.cable(index)
        netem = [program("tc", "iproute2"), "qdisc", "replace", "dev", cable, "root", "netem"]
        netem += ["delay", f"{ms}ms", "loss", f"{loss}%", "limit", "20000"]
        if subprocess.run(netem, capture_output=True).returncode == 0:
            return
        # A frame leaves the host with its sum still to be made by a card that is not there.
        must(*enter, sys.executable, RELAY, "--whole-frames", "eth0")
        relay = subprocess.Popen(
            [sys.executable, str(RELAY), cable, self._tap(index), self.bridge, str(ms), str(loss)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.relays[cable] = relay
        assert relay.stdout is not None and relay.stderr is not None
        if not relay.stdout.readline():
            reason = relay.stderr.read().decode().strip().splitlines()
            self.quicken(index)
            raise UnavailableError(f"no netem in this kernel, and no relay: {reason[-1:]}")

    def quicken(self, index: int) -> None:
        cable = self.cable(index)
        tc = [program("tc", "iproute2"), "qdisc", "delete", "dev", cable, "root"]
        subprocess.run(tc, capture_output=True)
        if relay := self.relays.pop(cable, None):
            relay.kill()
            relay.communicate()
            subprocess.run([self.ip, "link", "set", cable, "master", self.bridge], capture_output=True)

    def close(self) -> None:
        for relay in self.relays.values():
            relay.kill()
            relay.communicate()
        self.relays.clear()
        self._clear()
        self.claim.close()

    def _tap(self, index: int) -> str:
        return f"{self.bridge}t{index}"

    def _clear(self) -> None:
        """Also what a bed of this number left behind that was killed: nobody else has the claim."""
        for name in Path("/sys/class/net").iterdir():
            if name.name == self.bridge or name.name.startswith((f"{self.bridge}n", f"{self.bridge}t")):
                subprocess.run([self.ip, "link", "delete", name.name], capture_output=True)


def _claim() -> tuple[int, socket.socket]:
    """The first number that no other bed on this machine has; given back when this process ends."""
    for number in range(NETWORKS):
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0trainmark-bed-{number}")
        except OSError:
            claim.close()
        else:
            return number, claim
    raise UnavailableError(f"{NETWORKS} beds are already up on this machine")
