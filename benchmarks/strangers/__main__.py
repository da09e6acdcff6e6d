"""`python -m benchmarks.strangers --repositories FOLDER [--only NAME,…]` prints a table in Markdown."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from benchmarks.strangers.compare import Watch, rate, read_watch, verdict

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Recipe:
    """One program: where it lies, what it is started with, and what a step of it is."""

    name: str
    repository: str
    folder: str
    """Copied, and the program is started in it."""
    run: str
    """Words after `--`; `{here}` is the copy."""
    data: str = ""
    """A function of data.py that makes what the program reads."""
    options: str = "--steps 60"
    environment: dict[str, str] = field(default_factory=dict)
    samples: float | None = None
    """Of a full step of one process; none where Trainmark can only know steps."""
    epoch: tuple[int, float] | None = None
    """Steps of an epoch, and the samples of its last one where that is not full."""
    passes: int = 1
    """Backward passes in a step."""
    line: str = ""
    """Where backward passes cannot be seen: what the program prints after `line_steps` steps."""
    line_steps: int = 1
    pauses: bool = True
    """Whether what it does in evaluation mode is no part of its training."""

    pictures: bool = True
    """Whether it may import our stand-in of torchvision, which Transformers would take for the real one."""

    def samples_of(self, unit: str) -> Callable[[int], float]:
        each = 1.0 if unit == "steps" or self.samples is None else self.samples

        def samples(number: int) -> float:
            if each != 1.0 and self.epoch and number % self.epoch[0] == self.epoch[0] - 1:
                return self.epoch[1]
            return each * self.line_steps

        return samples


@dataclass(frozen=True)
class Outcome:
    figure: float | None
    unit: str
    own: float | None
    doubts: tuple[str, ...]
    refusal: str
    ran: bool = True

    @property
    def ratio(self) -> float | None:
        return self.figure / self.own if self.figure and self.own else None

    def row(self, name: str) -> str:
        figure = "–" if self.figure is None else f"{self.figure:,.4g} {self.unit}/s"
        own = "–" if self.own is None else f"{self.own:,.4g}"
        ratio = "–" if self.ratio is None else f"{self.ratio:.3f}"
        said = self.refusal or ", ".join(self.doubts)
        return f"| {name} | {figure} | {own} | {ratio} | {self.verdict} | {said} |"

    @property
    def verdict(self) -> str:
        return verdict(self.ratio, self.doubts, self.refusal) if self.ran else "did not run"


def recipes() -> list[Recipe]:
    table = yaml.safe_load((HERE / "recipes.yaml").read_text(encoding="utf-8"))
    return [Recipe(name=name, **fields) for name, fields in table["programs"].items()]


def run(recipe: Recipe, source: Path, work: Path, path: str) -> Outcome:
    """Start the program in a copy of its folder, and compare what came of it."""
    program, times = work / "program", work / "times"
    shutil.copytree(source, program, symlinks=True)
    times.mkdir()
    if recipe.data:
        python = shutil.which("python", path=path) or sys.executable
        subprocess.run([python, HERE / "data.py", recipe.data], cwd=program, check=True)
    words = recipe.run.format(here=program).split()
    modules = [HERE / "inside", *([HERE / "pictures"] if recipe.pictures else [])]
    environment = {
        **os.environ,
        **{"PATH": path, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        "PYTHONPATH": os.pathsep.join(map(str, modules)),
        **{"STRANGERS_FOLDER": str(times), "STRANGERS_LINE": recipe.line, "CUDA_VISIBLE_DEVICES": ""},
        **{name: text.format(here=program) for name, text in recipe.environment.items()},
    }
    options = ["--repeats", "1", "--name", "stranger", "--runs", str(work / "runs"), *recipe.options.split()]
    command = [sys.executable, "-m", "trainmark", "run", "--json", *options, "--", *words]
    done = subprocess.run(command, cwd=program, env=environment, capture_output=True, text=True)
    (work / "output.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
    found = list((work / "runs" / "stranger" / "trials").glob("*/01"))
    figure = json.loads((found[0] / "figure.json").read_text(encoding="utf-8")) if found else {}
    if not figure.get("figure"):
        detail = figure.get("detail") or done.stderr.strip()[-300:]
        return Outcome(None, "", None, (), detail, ran=figure.get("outcome") == "invalid")
    return _compared(recipe, figure["figure"], found[0], [read_watch(file) for file in times.iterdir()])


def _compared(recipe: Recipe, figure: dict[str, Any], trial: Path, watches: list[Watch]) -> Outcome:
    lines = (trial / "events" / "rank0.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    # Where no loader's first batch tells the time of the start, the first step only serves as start.
    start = [events[0]["mono"]] if "mono" in events[0] else []
    ends = [*start, *(event["mono"] for event in events if event["event"] == "step")]
    window = (ends[figure["window"]["first"]], ends[figure["window"]["stop"]])
    if not recipe.pauses:
        watches = [Watch(watch.passes, ()) for watch in watches]
    samples = recipe.samples_of(figure["unit"])
    rates = [rate(watch, window, recipe.passes, samples) for watch in watches]
    known = [value for value in rates if value is not None]
    comparable = known and (figure["unit"] == "steps" or recipe.samples is not None)
    doubts = tuple(doubt["code"] for doubt in figure["doubts"])
    return Outcome(figure["throughput"], figure["unit"], sum(known) if comparable else None, doubts, "")


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.strangers", description=__doc__)
    parser.add_argument("--repositories", type=Path, required=True, help="the folder of OWNER/NAME")
    parser.add_argument("--only", default="", help="names, with commas")
    parser.add_argument(
        "--path", default=os.environ["PATH"], help="the PATH on which python and the rest are found"
    )
    parser.add_argument("--keep", type=Path, help="keep the runs in this folder")
    asked = parser.parse_args(words)
    chosen = [recipe for recipe in recipes() if not asked.only or recipe.name in asked.only.split(",")]
    print("| program | figure | own stopwatch | ratio | verdict | doubts, or refusal |")
    print("|---|---:|---:|---:|---|---|")
    wrong = False
    for recipe in chosen:
        with tempfile.TemporaryDirectory() as scratch:
            work = (asked.keep or Path(scratch)) / recipe.name
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True)
            source = asked.repositories / recipe.repository / recipe.folder
            outcome = run(recipe, source.resolve(), work.resolve(), asked.path)
        print(outcome.row(recipe.name), flush=True)
        wrong = wrong or "WRONG" in outcome.verdict
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
