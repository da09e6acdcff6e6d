"""Stored files that were edited, cut or replaced by hand, under every command that reads runs."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from harness import Case, fuzz

from trainmark import __version__
from trainmark.base.errors import UserError
from trainmark.cli.main import trainmark
from trainmark.events import DeviceSample, RunEnd, RunStart, Step, stream
from trainmark.measure.fabric import FabricMeasurement, Link, MessageTime
from trainmark.measure.key import Key
from trainmark.measure.utilisation import ReferenceRate
from trainmark.store.files import write_json
from trainmark.store.measurements import FABRIC, encode_fabric, write_reference_rates
from trainmark.store.recompute import figure_of_folder
from trainmark.store.run import RunFolder, RunInfo
from trainmark.store.trial import TrialRecord, TrialSpec
from trainmark.suite import load
from trainmark.suite.model import Command

SUITE = "about: fuzzed\nworkload: {name: fuzzed, command: 'true'}\n"
AXES = (("image_size", 224),)
CASES = ("one-1n1g", "two-1n2g")
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("list",),
    ("show", "edited"),
    ("show", "edited", "--json"),
    ("show", "edited", "one-1n1g/02"),
    ("report", "edited", "--format", "md"),
    ("report", "edited", "--format", "json"),
    ("report", "edited", "--format", "csv"),
    ("report", "edited", "--format", "text"),
    ("report", "latest", "--format", "text"),
    ("compare", "edited", "whole"),
    ("compare", "whole", "edited", "--json"),
    ("query",),
    ("query", "SELECT * FROM trials", "--json"),
    ("export", "edited", "--to", "csv", "--force"),
    ("export", "edited", "--to", "dllogger", "--force"),
    ("export", "edited", "--to", "mllog", "--force"),
    ("export", "edited", "--to", "dlperf", "--force"),
    ("forecast", "edited", "--to", "1n4g", "--bandwidth", "1e9"),
)
# Each of them takes as long as all of those above.
SLOW: tuple[tuple[str, ...], ...] = (
    ("report", "edited", "--format", "html", "--lang", "zh"),
    ("run", "--resume", "edited"),
)
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 3.5, 1e300, -1e300, 2**63, 10**30, math.nan, math.inf, "", "x", "0",
    "\x1b[31mred", "\ud800", "../../up", "a" * 5000, [], [[]], [1, 2], ["a", 5], {}, {"a": {"b": []}},
    [None] * 3,
)  # fmt: skip


@functools.cache
def whole_runs() -> Path:
    """Two runs with every file that a run can have, made once and copied for each input."""
    runs = Path(tempfile.mkdtemp(prefix="fuzz-stored-"))
    for number, name in enumerate(("edited", "whole")):
        info = RunInfo(
            name, "fuzzed", "about", 1.7e9 + number, __version__, "trainmark run", 4, 4, (("c", "why"),)
        )
        run = RunFolder.create(runs / name, info, SUITE)
        run.keep_environment(
            {"host": {"hostname": "a", "memory_bytes": 1 << 34}, "devices": {"gpus": [{"name": "x"}]}}
        )
        run.keep_facts({case: {"framework_version": "1", "conformance": None} for case in CASES})
        run.keep_cluster({"launcher": "ssh", "nodes": [{"name": "127.0.0.1"}]}, {"nodes": []})
        (run.path / "cluster.json").unlink()
        for case in CASES:
            for repeat in (1, 2):
                keep_trial(run, case, repeat)
        points = tuple(MessageTime(size, 1e-4 * size, 0.9e-4 * size, 1.1e-4 * size) for size in (1, 1 << 20))
        fabric = FabricMeasurement(
            "now", "cpu", "gloo", True, ("a", "a"), (Link((0, 1), ("a", "a"), points),), ()
        )
        write_json(run.path / FABRIC, encode_fabric(fabric))
        write_reference_rates(
            run.path, [ReferenceRate("cpu", "fuzzed", AXES, "fp32", 100.0, 8, __version__, "now")]
        )
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(runs, copy := Path(folder) / "runs")
        for command in COMMANDS:  # what they import, they import once and not in every process
            invoke(command, copy)
    return runs


def invoke(command: tuple[str, ...], runs: Path) -> Result:
    return CliRunner().invoke(trainmark, [*command, "--runs", str(runs)], standalone_mode=False)


def keep_trial(run: RunFolder, case: str, repeat: int) -> None:
    ranks = 2 if case.endswith("2g") else 1
    key = Key("fuzzed", "pytorch", precision="fp32", batch_per_device=8, devices_per_node=ranks, device="cpu")
    spec = TrialSpec(case, repeat, "true", {"A": "b"}, 40, 2, key, 1.7e9, "f")
    place = run.trial(case, repeat)
    part = place.begin(spec, {})
    (part / "events").mkdir()
    for rank in range(ranks):
        steps = [Step(rank, n, 10 + 0.1 * n, 1.7e9 + 0.1 * n, 8, loss=2.0, data_wait=0.01) for n in range(40)]
        facts = {"epochs": 2, "steps_per_epoch": 20, "target": {"top1": 0.7}} if repeat == 2 else {}
        rows = [
            RunStart(rank, ranks, 9.9, 1.7e9, "images", facts=facts),
            *steps,
            RunEnd(rank, 20.0, 1.7e9 + 10),
        ]
        stream.write(part / "events" / f"rank{rank}.jsonl", rows)
    samples = [DeviceSample("cpu", 10 + n, 1.7e9 + n, 0.5, power_watts=50.0) for n in range(4)]
    stream.write(part / "samples.jsonl", samples)
    figure = figure_of_folder(part, key, 2)
    place.finish(TrialRecord(spec, key, "ok", "", None, (), 1.7e9, 20.0, "f", figure))


def make(rng: random.Random, number: int) -> Case:
    run = whole_runs() / "edited"
    files = sorted(path.relative_to(run) for path in run.rglob("*") if path.is_file())
    edits = [(rng.choice(files), *edit(rng)) for _ in range(rng.choice((1, 1, 2, 4)))]
    commands = rng.sample(COMMANDS, 3) + ([rng.choice(SLOW)] if number % 20 == 0 else [])
    label = "; ".join(f"{path}: {what}" for path, what, _ in edits)
    return Case(label, lambda: check([(path, change) for path, _, change in edits], commands))


def check(edits: list[tuple[Path, Callable[[Path], None]]], commands: list[tuple[str, ...]]) -> str | None:
    """Every command answers with a result or a sentence, and the other run is whole."""
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "runs"
        shutil.copytree(whole_runs(), runs)
        for path, change in edits:
            if (edited := runs / "edited" / path).is_file():
                with contextlib.suppress(UnicodeDecodeError):  # an edit before this one left no text
                    change(edited)
        os.environ["TRAINMARK_HOME"] = os.environ["TRAINMARK_RUNS"] = folder
        for command in commands:
            if command[0] == "run" and trains(runs / "edited" / "suite.yaml"):
                continue
            done = invoke(command, runs)
            if done.exception is not None and not isinstance(done.exception, (UserError, SystemExit)):
                if type(done.exception).__module__.startswith("click"):
                    continue
                raise RuntimeError(f"trainmark {' '.join(command)}") from done.exception
            if "\x1b" in done.output:
                return f"trainmark {' '.join(command)}: an escape sequence in {done.output!r:.200}"
            if command[0] == "report" and command[-1] == "json" and done.exit_code == 0:
                for result in json.loads(done.stdout)["results"]:
                    if not 0 < result["throughput"]["median"] < math.inf:
                        return f"a throughput of {result['throughput']}"
        listed = invoke(("list", "--json"), runs)
        status = {row["name"]: row["status"] for row in json.loads(listed.stdout)}
        if status.get("whole") != "finished" or (
            len(status) < 2 and (runs / "edited" / "run.json").is_file()
        ):
            return f"the runs are listed as {status}"
    return None


def trains(suite: Path) -> bool:
    """An edit may leave another valid suite, such as `{}`: to resume that is to train ResNet-50."""
    if not suite.is_file():
        return False
    try:
        return any(
            not isinstance(case.workload, Command)
            for case in load.parse(suite.read_text(encoding="utf-8"), "s").cases
        )
    except (UserError, OSError, ValueError):
        return False


def edit(rng: random.Random) -> tuple[str, Callable[[Path], None]]:
    kind = rng.randrange(10)
    seed = rng.random()
    if kind == 0:
        size = rng.randrange(400)
        return f"cut at {size}", lambda path: os.truncate(path, size)
    if kind == 1:
        return "bits flipped", lambda path: path.write_bytes(flipped(random.Random(seed), path.read_bytes()))
    if kind == 2:
        garbage = rng.choice(
            (b"", b"null", b"[]", b"{}", b"\xff\xfe", b"[" * 90_000, b"5", b'"x"', b"\0" * 99)
        )
        return f"{garbage[:9]!r}", lambda path: path.write_bytes(garbage)
    if kind == 3:
        return "a FIFO", lambda path: (path.unlink(), os.mkfifo(path))[1]
    if kind == 4:
        return "a folder", lambda path: (path.unlink(), path.mkdir())[1]
    if kind == 5:
        return "gone", Path.unlink
    value, name = rng.choice(ODD), rng.choice(("replaced", "deleted", "added"))
    return f"{name} {value!r:.30}", lambda path: change_json(random.Random(seed), path, name, value)


def flipped(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def change_json(rng: random.Random, path: Path, name: str, value: Any) -> None:
    """One value of a JSON file, or of one line of an event file, wherever it is nested."""
    if path.suffix not in (".json", ".jsonl"):
        path.write_text(str(value).encode("utf-8", "replace").decode())
        return
    lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    if not lines:
        return
    at = rng.randrange(len(lines))
    try:
        tree = json.loads(lines[at])
    except ValueError:
        return
    places = list(containers(tree))
    if places:
        place = rng.choice(places)
        key = rng.choice(list(place) if isinstance(place, dict) else range(len(place)))
        if name == "deleted":
            del place[key]
        elif name == "added" and isinstance(place, dict):
            place[f"{key}_"] = value
        else:
            place[key] = value
    lines[at] = json.dumps(tree)
    path.write_text("\n".join(lines) + "\n")


def containers(tree: Any) -> Iterator[Any]:
    if isinstance(tree, (dict, list)) and tree:
        yield tree
        for inner in tree.values() if isinstance(tree, dict) else tree:
            yield from containers(inner)


if __name__ == "__main__":
    fuzz("stored", 10_000, make)
