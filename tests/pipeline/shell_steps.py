"""The shell of a pipeline's definition, run as the CI system runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXPRESSION = re.compile(r"\$\{\{ ([\w.-]+) \}\}")


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str
    outputs: dict[str, str]


def filled_in(text: str, values: Mapping[str, str]) -> str:
    """The text with every `${{ name }}` replaced; a name that is not known is a mistake."""
    return EXPRESSION.sub(lambda match: values[match[1]], text)


def bash(script: str, folder: Path, variables: Mapping[str, str]) -> Ended:
    """What a step does in `folder`, and the outputs that it writes as GitHub's steps do."""
    output = folder / "output.txt"
    output.write_text("")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("TRAINMARK_R")},
        "PATH": os.pathsep.join([str(folder / "bin"), os.environ.get("PATH", os.defpath)]),
        "GITHUB_OUTPUT": str(output),
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        **variables,
    }
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip
    pairs = [line.partition("=") for line in output.read_text().splitlines()]
    return Ended(done.returncode, done.stdout, done.stderr, {name: value for name, _, value in pairs})


def python_in(folder: Path, name: str = "python3", body: str = f'exec {sys.executable} "$@"') -> str:
    """A program of this name, on the path of the steps: this interpreter, or what `body` does."""
    path = folder / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)
