"""Golden outputs: what commands print and write of recorded runs, compared with the files of `expected/`."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import time
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import yaml
from recorded import Run, recorded_runs, write_run
from server_pages import Server

HERE = Path(__file__).parent
EXPECTED = HERE / "expected"
DAY = 86_400
# Of each file in a folder that is written, so many lines are kept at either end, and a digest of the rest.
LINES_KEPT = 25
LONGEST_DIFFERENCE = 150

UNIX_TIME = re.compile(r"(?<![\w.])\d{10}(?:\.\d{1,7})?(?![\w.])")
# The last digits of a float differ with the processor.
LONG_NUMBER = re.compile(r"(?<![\w.])(?!\d{10}\.\d{1,7}\b)(?=[\d.]{15})\d+\.\d+(?:e[-+]?\d+)?(?![\w.])")
NORMALIZED = (
    # What makes a page look and move as it does.
    (re.compile(r"(<(style|script)>).*?(</\2>)", re.DOTALL), r"\1…\3"),
    (re.compile(r"(?<=/static/)(\w+)\.[0-9a-f]{16}"), r"\1.…"),
    (re.compile(r"sha256-[\w+/=]+"), "sha256-…"),
    # Of a packed file, which another zlib packs otherwise.
    (re.compile(r"\b[0-9a-f]{64}\b"), "DIGEST"),
    (re.compile(r'(?<="bytes": )\d+|(?<=files, )[\d,]+(?= bytes)|(?<=<dd>)[\d,]+(?= B</dd>)'), "SIZE"),
)


def commands() -> dict[str, str]:
    """Return all commands by the names of their expected files; those with {lang} come twice."""
    listed = yaml.safe_load((HERE / "commands.yaml").read_text(encoding="utf-8"))
    english = {name: line.replace("{lang}", "en") for name, line in listed.items()}
    both = {name: line for name, line in listed.items() if "{lang}" in line}
    return english | {name.replace(".", ".zh."): line.replace("{lang}", "zh") for name, line in both.items()}


class CommandResult(NamedTuple):
    code: int
    out: str
    err: str


class Sandbox:
    """A folder with all recorded runs, and a process that runs commands in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        shutil.copytree(HERE / "inputs", self.folder, dirs_exist_ok=True)
        home = self.folder / "home"
        for place in (home, self.folder / "packed", self.folder / "out"):
            place.mkdir()
        passed = ("PATH", "PYTHONPATH", "PYTHONHASHSEED")
        self._environment = {name: os.environ[name] for name in passed if name in os.environ} | {
            **{"HOME": str(home), "TRAINMARK_HOME": str(home), "TRAINMARK_RUNS": "recorded", "TZ": "UTC"},
            **{"LANG": "C.UTF-8", "COLUMNS": "100", "NO_COLOR": "1", "OPENBLAS_NUM_THREADS": "1"},
        }
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "command_server.py")],
            cwd=self.folder, env=self._environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._version = self.run("--version").out.split()[-1]
        for place, run in recorded_runs():
            self._record(self.folder / place / run.name, run)

    def _record(self, folder: Path, run: Run) -> None:
        """Write a run, with the figures that follow from its events."""
        write_run(self.folder / "raw" / run.name, run)
        packed = f"packed/{run.name}.trainmark"
        result = self.run(f"pack raw/{run.name} --recompute --out {packed}")
        if result.code:
            raise RuntimeError(f"{run.name} cannot be packed: {result.err}")
        with tarfile.open(self.folder / packed) as archive:
            archive.extractall(folder, filter="data")
        for name, text in run.damage.items():
            (folder / name).write_text(text, encoding="utf-8")
        os.utime(folder, (run.created, run.created))

    def run(self, line: str) -> CommandResult:
        out, err = self.folder / "stdout", self.folder / "stderr"
        assert self._process.stdin is not None and self._process.stdout is not None
        request = {"words": shlex.split(line), "out": str(out), "err": str(err)}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        texts = (path.read_text(encoding="utf-8", errors="replace") for path in (out, err))
        return CommandResult(code, *texts)

    def output(self, name: str, lines: str) -> str:
        """Return what a command prints, and the files that it writes where {out} is."""
        out, text = self.folder / "out" / name, ""
        for line in lines.split(" && "):
            if line.startswith("GET "):
                text += self._server.get(line.removeprefix("GET "))
                continue
            if "{out}/" in line:
                out.mkdir()
            result = self.run(line.replace("{out}", f"out/{name}"))
            text += result.out
            text += f"--- standard error\n{result.err}" if result.err else ""
            text += f"--- exit code {result.code}\n" if result.code else ""
        return self._normalize(text) + self._written_files(out)

    def _written_files(self, out: Path) -> str:
        if out.is_file():
            return self._normalize(out.read_text(encoding="utf-8"))
        files = sorted(path for path in out.rglob("*") if path.is_file())
        return "".join(f"==> {path.relative_to(out)} <==\n{self._shortened(path)}" for path in files)

    def _shortened(self, path: Path) -> str:
        try:
            lines = self._normalize(path.read_text(encoding="utf-8")).splitlines(keepends=True)
        except UnicodeDecodeError:
            return f"{path.stat().st_size} bytes\n"
        if between := lines[LINES_KEPT:-LINES_KEPT]:
            digest = hashlib.sha256("".join(between).encode()).hexdigest()
            lines[LINES_KEPT:-LINES_KEPT] = [f"… {len(between)} lines with the SHA-256 {digest[:16]}\n"]
        return "".join(lines)

    def _normalize(self, text: str) -> str:
        """Replace what differs with the machine, the folder, the day and the version."""
        text = text.replace(str(self.folder), "FOLDER").replace(sys.executable, "PYTHON")
        text = re.sub(rf"(?<![\w.]){re.escape(self._version)}(?![\w.])", "VERSION", text)
        text = UNIX_TIME.sub(lambda at: "NOW" if abs(float(at[0]) - time.time()) < DAY else at[0], text)
        text = LONG_NUMBER.sub(lambda number: f"{float(number[0]):.11g}", text)
        for pattern, name in NORMALIZED:
            text = pattern.sub(name, text)
        return text.replace("><", ">\n<") if "<!doctype html>" in text.lower() else text

    @cached_property
    def _server(self) -> Server:
        return Server(self.folder, self._environment, self.run)

    def close(self) -> None:
        self._process.communicate()
        if "_server" in vars(self):
            self._server.stop()


def difference(name: str, actual: str) -> str:
    """Return a unified diff, cut where it is long; empty where the output is the expected one."""
    path = EXPECTED / name
    expected = path.read_bytes().decode("utf-8") if path.is_file() else ""
    if expected == actual:
        return ""
    sides = (text.splitlines(keepends=True) for text in (expected, actual))
    lines = [
        line if line.endswith("\n") else f"{line}\n\\ no end of line\n"
        for line in difflib.unified_diff(*sides, f"expected/{name}", "now")
    ]
    more = len(lines) - LONGEST_DIFFERENCE
    return "".join(lines[:LONGEST_DIFFERENCE]) + (f"… and {more} more lines\n" if more > 0 else "")
