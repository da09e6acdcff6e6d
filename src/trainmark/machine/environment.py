"""The whole environment of a measurement, its fingerprint, and the git commit that was measured."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trainmark.machine.devices import Devices, read_devices, read_topology
from trainmark.machine.host import Host, RunningContainer, read_container, read_host
from trainmark.machine.network import MachineFabric, read_fabric
from trainmark.machine.reading import command_output
from trainmark.machine.software import Libraries, Software, read_interpreter, read_libraries, read_software


@dataclass(frozen=True)
class Git:
    """The commit checked out; `dirty` when tracked files differ from it, None when git did not say.

    `changes` tells two differences from the same commit apart: the SHA-256 of `git diff`, shortened.
    """

    commit: str
    branch: str | None
    dirty: bool | None
    changes: str | None = None


def read_git(folder: Path) -> Git | None:
    """The commit of the working tree `folder` lies in; None outside of one."""
    commit = _git(folder, "rev-parse", "--verify", "HEAD")
    if not commit:
        return None
    branch = _git(folder, "symbolic-ref", "--short", "HEAD")
    status = _git(folder, "status", "--porcelain", "--untracked-files=no")
    diff = _git(folder, "diff", "--no-ext-diff", "--no-textconv", "HEAD") if status else None
    digest = hashlib.sha256(diff.encode("utf-8", "replace")).hexdigest()[:12] if diff else None
    return Git(commit, branch, None if status is None else bool(status), digest)


def _git(folder: Path, *arguments: str) -> str | None:
    # Looking must not write: without this, `status` refreshes the index and may block someone's commit.
    return command_output("git", "--no-optional-locks", "-C", str(folder), *arguments)


GIBIBYTE = 1 << 30


@dataclass(frozen=True)
class Environment:
    """Everything but the code that a figure depends on; None is "looked for and not found"."""

    host: Host
    devices: Devices
    topology: str | None
    libraries: Libraries
    fabric: MachineFabric
    software: Software
    git: Git | None
    container: RunningContainer | None


def capture(folder: Path | None = None, python: Path | None = None) -> Environment:
    """Look at this machine; `folder`'s git commit and `python`'s packages where they are given."""
    # Side by side, because a slow driver or a sleepy network disc would otherwise be waited for in turn.
    with ThreadPoolExecutor(max_workers=4, thread_name_prefix="environment") as probes:
        devices = probes.submit(read_devices)
        topology = probes.submit(read_topology)
        git = probes.submit(read_git, folder) if folder else None
        interpreter = probes.submit(read_interpreter, python)
        host, fabric, container = read_host(), read_fabric(), read_container()
        interpreter_facts = interpreter.result()
        return Environment(
            host=host,
            devices=devices.result(),
            topology=topology.result(),
            libraries=read_libraries(interpreter_facts.packages if interpreter_facts else {}),
            fabric=fabric,
            software=read_software(interpreter_facts, os.environ),
            git=git.result() if git else None,
            container=container,
        )


def to_dict(environment: Environment) -> dict[str, Any]:
    """The environment as plain JSON values, one key a section."""
    sections: dict[str, Any] = _json_values(asdict(environment))
    return sections


def fingerprint(environment: Environment) -> str:
    """Sixteen hex digits that two environments share when they should train equally fast.

    Names of machines and serial numbers of cards are left out, so that the equal nodes of a cluster agree;
    so is the git commit, which says what was measured rather than where.
    """
    sections = to_dict(environment)
    host, fabric = sections["host"], sections["fabric"]
    # The kernel keeps back a little memory, more or less from one start to the next, and a virtual machine's
    # node grows and shrinks while it runs.
    host["memory_bytes"] = round((host["memory_bytes"] or 0) / GIBIBYTE)
    for node in host["numa"] or []:
        del node["memory_bytes"]
    # Bridges and virtual pairs come and go with other people's containers.
    fabric["interfaces"] = [card for card in fabric["interfaces"] or [] if card["physical"]]
    for gpu in sections["devices"]["gpus"]:
        del gpu["uuid"], gpu["pci_bus"]
    sections["software"]["variables"].pop("CUDA_VISIBLE_DEVICES", None)
    del host["hostname"], sections["git"]
    return hashlib.sha256(json.dumps(sections, sort_keys=True).encode()).hexdigest()[:16]


def _json_values(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _json_values(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_values(each) for each in value]
    return value
