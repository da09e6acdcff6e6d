"""The side of the Ray launcher that knows Ray: run by a Python that has it, beside the harness.

    python ray_bridge.py FOLDER '{"address": …, "count": …, "hosts": […]}'

It reserves the nodes by a placement group, prints them as one line of JSON, and then carries bytes between
FOLDER/socket and an agent on a node for everyone who connects. It ends with its standard input.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

READ_BYTES = 1 << 18
WAIT_SECONDS = 0.5
PLACE_SECONDS = 300.0
START_SECONDS = 30.0
ALONE_SECONDS = 5.0
# Ray kills the children of a worker that it ends, and the agent must end what is below it first: it sees its
# input close. So it is nobody's child.
ORPHANED = 'exec 3<&0; "$@" <&3 3<&- &'


class Courier:
    """Lives on a node: one process there, its input and its output."""

    def start(self, command: list[str]) -> None:
        # Ray sets this for its own workers; the ranks' share of the processors is the suite's.
        environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
        process = subprocess.Popen(
            ["sh", "-c", ORPHANED, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
        process.wait()
        assert process.stdin is not None and process.stdout is not None
        self.given, self.output = process.stdin, process.stdout
        self.asked = time.monotonic()
        threading.Thread(target=self.leave, daemon=True).start()

    def write(self, data: bytes) -> None:
        self.given.write(data)
        self.given.flush()

    def end(self) -> None:
        self.given.close()
        self.wait(START_SECONDS)

    def wait(self, seconds: float | None = None) -> None:
        """For the other end of its output to be closed, which is when it has ended."""
        ended = select.poll()
        ended.register(self.output, 0)
        ended.poll(None if seconds is None else seconds * 1000)

    def leave(self) -> None:
        """Once its process has ended and nobody asks any more, as on a node that was cut off."""
        self.wait()
        while time.monotonic() - self.asked < ALONE_SECONDS:
            time.sleep(WAIT_SECONDS)
        os._exit(0)

    def read(self) -> bytes | None:
        """None at its end; nothing where nothing came for a while."""
        self.asked = time.monotonic()
        if not select.select([self.output], [], [], WAIT_SECONDS)[0]:
            return b""
        return os.read(self.output.fileno(), READ_BYTES) or None


class Bridge:
    def __init__(self, folder: Path, wanted: dict[str, Any]) -> None:
        self.folder = folder
        ray.init(address=wanted["address"], namespace="trainmark", log_to_driver=False, logging_level="ERROR")
        self.nodes = chosen(ray.nodes(), wanted["count"], wanted["hosts"])
        gpus = min(int(node["Resources"].get("GPU", 0)) for node in self.nodes)
        self.share = {"num_cpus": 1, "num_gpus": gpus}
        bundle = {"CPU": 1, **({"GPU": gpus} if gpus else {})}
        bundles = [{**bundle, f"node:{node['NodeManagerAddress']}": 0.001} for node in self.nodes]
        self.group = placement_group(bundles, strategy="STRICT_SPREAD")
        ray.get(self.group.ready(), timeout=PLACE_SECONDS)

    def serve(self) -> None:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self.folder / "socket"))
        listener.listen()
        nodes = [{"name": n["NodeManagerHostname"], "address": n["NodeManagerAddress"]} for n in self.nodes]
        print(json.dumps({"nodes": nodes}), flush=True)
        threading.Thread(target=self.accept, args=(listener,), daemon=True).start()
        while os.read(0, READ_BYTES):
            pass

    def accept(self, listener: socket.socket) -> None:
        while True:
            visitor, _ = listener.accept()
            threading.Thread(target=self.carry, args=(visitor,), daemon=True).start()

    def carry(self, visitor: socket.socket) -> None:
        with visitor, visitor.makefile("rb", buffering=0) as given:
            asked = json.loads(given.readline())
            try:
                self.pump(visitor, asked)
            except Exception as error:  # noqa: BLE001  whatever Ray raises is the reason that the node is lost
                reason = str(error).strip().splitlines() or [type(error).__name__]
                (self.folder / asked["name"]).write_text(f"Ray: {reason[0]}", encoding="utf-8")

    def pump(self, visitor: socket.socket, asked: dict[str, Any]) -> None:
        self.require_alive(asked["node"])
        place = PlacementGroupSchedulingStrategy(self.group, placement_group_bundle_index=asked["node"])
        options = {**self.share, "scheduling_strategy": place, "max_concurrency": 4}
        courier = ray.remote(Courier).options(**options).remote()
        ray.get(courier.start.remote(asked["command"]), timeout=START_SECONDS)
        threading.Thread(target=self.forth, args=(visitor, courier), daemon=True).start()
        while (chunk := ray.get(courier.read.remote())) is not None:
            if chunk:
                visitor.sendall(chunk)
        ray.kill(courier)

    def forth(self, visitor: socket.socket, courier: Any) -> None:
        try:
            while data := visitor.recv(READ_BYTES):
                ray.get(courier.write.remote(data))
            ray.get(courier.end.remote())
        except (OSError, ray.exceptions.RayError):
            return

    def require_alive(self, index: int) -> None:
        address = self.nodes[index]["NodeManagerAddress"]
        if not any(node["Alive"] for node in ray.nodes() if node["NodeManagerAddress"] == address):
            raise RuntimeError("the node is dead")


def chosen(nodes: list[dict[str, Any]], count: int, hosts: list[str]) -> list[dict[str, Any]]:
    """Living nodes with a processor to give, the named ones in the order they were named."""
    usable = [node for node in nodes if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
    by_name = {
        name: node for node in usable for name in (node["NodeManagerHostname"], node["NodeManagerAddress"])
    }
    if missing := [name for name in hosts if name not in by_name]:
        sys.exit(f"Ray knows no living node {missing[0]}; it has {', '.join(sorted(by_name)) or 'none'}")
    if hosts:
        return [by_name[name] for name in hosts]
    if len(usable) < count:
        sys.exit(f"Ray has {len(usable)} nodes that can be used, {count} are needed")
    return sorted(usable, key=lambda node: node["NodeManagerHostname"])[:count]


if __name__ == "__main__":
    Bridge(Path(sys.argv[1]), json.loads(sys.argv[2])).serve()
    # Not by way of Ray's own end, which waits for its processes.
    os._exit(0)
