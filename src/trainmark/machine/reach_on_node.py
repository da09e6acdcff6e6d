"""Who can reach whom: sent as text and run on every node at the same time (Python 3.8, standard library).

A node listens on the one address that it was given, for some seconds at most, and answers only those who
show the token; meanwhile it calls on every peer. A direction that a firewall blocks shows as one that fails.
"""

from __future__ import annotations

import contextlib
import hmac
import ipaddress
import json
import socket
import struct
import sys
import threading
import time
from typing import Any

from trainmark.machine.handshake import proof, read_line

GREETING_SECONDS = 2.0
RETRY_SECONDS = 0.1
ROUND_TRIPS = 10
CLOCK = struct.Struct("!d")


class Meeting:
    def __init__(self, asked: dict[str, Any]) -> None:
        self.node: str = asked["node"]
        self.address: str = asked["address"]
        self.token: str = asked["token"]
        self.peers: list[dict[str, Any]] = asked["peers"]
        self.deadline = time.monotonic() + asked["seconds"]
        self.reached: dict[str, dict[str, float]] = {}
        self.failed: dict[str, str] = {}
        self.heard: set[str] = set()
        if ipaddress.ip_address(self.address).is_unspecified:
            raise ValueError("a meeting needs one address to listen on, not all of them")
        self.listener = socket.socket(family(self.address), socket.SOCK_STREAM)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((self.address, asked["port"]))
        self.listener.listen(len(self.peers) + 1)

    def hold(self) -> dict[str, Any]:
        names = {peer["node"] for peer in self.peers}
        callers = [threading.Thread(target=self.call, args=(peer,), daemon=True) for peer in self.peers]
        for thread in [*callers, threading.Thread(target=self.receive, daemon=True)]:
            thread.start()
        for thread in callers:
            thread.join()
        while time.monotonic() < self.deadline and not names <= self.heard:
            time.sleep(RETRY_SECONDS / 5)
        self.listener.close()
        return {"reached": self.reached, "failed": self.failed, "heard": sorted(self.heard & names)}

    def call(self, peer: dict[str, Any]) -> None:
        """Until the peer answers or the time is over: it may begin to listen after us."""
        while True:
            left = self.deadline - time.monotonic()
            try:
                self.reached[peer["node"]] = self.round_trip(peer, max(left, RETRY_SECONDS))
            except OSError as error:
                self.failed[peer["node"]] = reason(error)
            else:
                self.failed.pop(peer["node"], None)
                return
            if time.monotonic() + RETRY_SECONDS >= self.deadline:
                return
            time.sleep(RETRY_SECONDS)

    def round_trip(self, peer: dict[str, Any], seconds: float) -> dict[str, float]:
        """The shortest of some, and how far the peer's clock was ahead of ours in the middle of it.

        Called from our own address, as the ranks will be.
        """
        with socket.socket(family(peer["address"]), socket.SOCK_STREAM) as called:
            called.settimeout(seconds)
            called.bind((self.address, 0))
            called.connect((peer["address"], peer["port"]))
            called.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            called.sendall(f"{proof(self.token, self.node)} {self.node}\n".encode())
            if not hmac.compare_digest(read_line(called), proof(self.token, "answer " + peer["node"])):
                raise ConnectionError("something else answered there")
            trips = []
            for _ in range(ROUND_TRIPS):
                wall, began = time.time(), time.perf_counter()
                called.sendall(b".")
                (peer_time,) = CLOCK.unpack(exactly(called, CLOCK.size))
                took = time.perf_counter() - began
                trips.append((took, peer_time - wall - took / 2))
            took, ahead = min(trips)
            return {"seconds": took, "ahead": ahead}

    def receive(self) -> None:
        while True:
            try:
                caller, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(caller,), daemon=True).start()

    def answer(self, caller: socket.socket) -> None:
        """Silent and gone where the greeting is not that of a peer."""
        with caller, contextlib.suppress(OSError):
            caller.settimeout(GREETING_SECONDS)
            shown, _, node = read_line(caller).partition(" ")
            if not hmac.compare_digest(shown, proof(self.token, node)):
                return
            caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            caller.sendall((proof(self.token, "answer " + self.node) + "\n").encode())
            for _ in range(ROUND_TRIPS):
                exactly(caller, 1)
                caller.sendall(CLOCK.pack(time.time()))
            self.heard.add(node)


def exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            raise ConnectionError("the connection was cut")
        data += piece
    return data


def family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def reason(error: OSError) -> str:
    return "no answer" if isinstance(error, socket.timeout) else error.strerror or str(error)


def main() -> None:
    question = json.load(sys.stdin)
    print(json.dumps(Meeting(question).hold() if question else {}))
