"""Nodes that are processes of this machine, each with its own address, environment and limits."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from trainmark.launch.asking import Reply, parse_answer


@dataclass(frozen=True)
class LocalNode:
    """`before` is what the interpreter is started by, such as prlimit."""

    name: str
    address: str
    before: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    python: str = sys.executable


class LocalNodes:
    def __init__(self, *nodes: LocalNode) -> None:
        self.all = nodes
        self.nodes: Sequence[str] = [node.name for node in nodes]

    @property
    def addresses(self) -> dict[str, str]:
        return {node.name: node.address for node in self.all}

    def __call__(self, program: str, given: Sequence[dict[str, Any]], limit: float) -> list[Reply]:
        with ThreadPoolExecutor(len(self.all)) as pool:
            return list(
                pool.map(lambda pair: asked(*pair, program, limit), zip(self.all, given, strict=True))
            )


def asked(node: LocalNode, question: dict[str, Any], program: str, limit: float) -> Reply:
    sent = time.time()
    try:
        done = subprocess.run(
            [*node.before, node.python, "-E", "-s", "-c", program],
            input=json.dumps(question), env={**os.environ, **node.environment},
            capture_output=True, text=True, timeout=limit,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return Reply(node.name, None, str(error), sent, time.time())
    answer, trouble = parse_answer(done.stdout, done.stderr)
    return Reply(node.name, answer, trouble, sent, time.time())


def oldest_python() -> str:
    """The oldest that the programs are written for."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    interpreters = [*map(str, sorted(pyenv.glob("3.8.*/bin/python"))), shutil.which("python3.8")]
    if interpreters[0] is None:
        pytest.skip("no Python 3.8 here")
    return interpreters[0]


def local_nodes(count: int, **of_last: Any) -> LocalNodes:
    """n1, n2, …, each on a loopback address of its own; the last one may differ."""
    differing = [of_last if index == count else {} for index in range(1, count + 1)]
    return LocalNodes(
        *(LocalNode(f"n{i}", f"127.0.0.{10 + i}", **kinds) for i, kinds in enumerate(differing, 1))
    )
