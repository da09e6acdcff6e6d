"""Event streams that no training writes, by hypothesis: each gives a sentence, or a figure that can be.

python fuzz/streams.py --count 100000
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from trainmark.base import typed_json
from trainmark.events.ranges import FACTS, FIELDS
from trainmark.events.stream import StreamError
from trainmark.measure.figure import TrialFigure
from trainmark.measure.key import Key
from trainmark.measure.result import CaseTrial, summarize
from trainmark.measure.trace import TraceError
from trainmark.runner.progress import Follower
from trainmark.store.recompute import figure_of_folder

SECONDS = 10
MEGABYTES = 500
AT_ONCE = 2_500
KEY = Key("fuzzed", precision="fp32", device="cpu", batch_per_device=8)
SPECIAL = (
    0, -1, 1, 2, 0.5, -0.0, 1e-320, 1e9, 1e18, 1e300, -1e300, 2**31, 2**53, 2**63, 2**64, 10**30, 10**400,
    math.nan, math.inf, -math.inf, True, False, None, "", "0", "NaN", "\ud800", "\x1b[31m", [], [1], {},
    {"a": 1},
)  # fmt: skip
odd = st.sampled_from(SPECIAL) | st.integers() | st.floats() | st.text(max_size=20)
names = st.sampled_from(sorted({*FIELDS, "event", "unit", "scope", "facts", "device", "throttle", "kind"}))
facts = st.dictionaries(
    st.sampled_from(
        sorted({*FACTS, "target", "state", "node", "fallbacks", "departures", "seed", "device_name"})
    )
    | st.text(max_size=8),
    odd | st.dictionaries(st.sampled_from(["top1", "top5", "x"]), odd, max_size=2),
    max_size=4,
)
STATES = st.sampled_from(["begin", "end", None])


@st.composite
def good_rank(draw: st.DrawFn, rank: int, ranks: int) -> list[dict[str, Any]]:
    """What a rank of a real training writes, sometimes by epochs, sometimes resumed."""
    now, steps = draw(st.floats(0, 1e6)), draw(st.integers(0, 40))
    pace = draw(st.sampled_from([0.01, 0.5, 1e-9, 0.0]))
    run_facts = {"epochs": 2, "steps_per_epoch": 10, "target": {"top1": 0.5}} if draw(st.booleans()) else {}
    start = {"event": "run_start", "rank": rank, "world_size": ranks, "mono": now, "wall": now + 1e9}
    rows: list[dict[str, Any]] = [{**start, "unit": "rows", "facts": run_facts}]
    for step in range(steps):
        now += pace
        row = {"event": "step", "rank": rank, "step": step, "mono": now, "wall": now + 1e9, "samples": 8}
        if draw(st.booleans()):
            row |= {"loss": 6.9, "data_wait": pace / 9, "compute": pace / 2, "communication": pace / 4}
        rows.append(row)
        if run_facts and step % 10 == 9:
            for kind in ("epoch", "eval", "checkpoint"):
                mark = {"epoch": step // 10, "state": draw(STATES), "seconds": 0.1, "top1": step / 40}
                rows.append({"event": kind, "rank": rank, "mono": now, "wall": now + 1e9, "facts": mark})
        if draw(st.integers(0, 30)) == 0:
            resumed = {"resumed_step": draw(st.integers(0, step + 1)), **run_facts}
            rows.append({**start, "mono": now, "facts": resumed})
    if draw(st.booleans()):
        rows.append({"event": "run_end", "rank": rank, "mono": now, "facts": {"peak_flops": 1e12}})
    return rows


@st.composite
def stream_of(draw: st.DrawFn) -> list[list[bytes]]:
    """The files of some ranks, with up to six things wrong with each."""
    ranks = draw(st.integers(1, 3))
    files = []
    for rank in range(ranks):
        rows: list[Any] = draw(good_rank(rank, ranks))
        for _ in range(draw(st.integers(0, 6))):
            at = draw(st.integers(0, max(0, len(rows) - 1)))
            change = draw(st.integers(0, 7))
            if rows and change <= 2 and isinstance(rows[at], dict):
                rows[at] = {**rows[at], draw(names): draw(odd)}
            elif rows and change == 3 and isinstance(rows[at], dict):
                rows[at] = {**rows[at], "facts": draw(facts)}
            elif rows and change == 4:
                rows.pop(at)
            elif rows and change == 5:
                rows.insert(draw(st.integers(0, len(rows))), rows[at])
            elif change == 6:
                rows.insert(at, draw(st.binary(max_size=40) | odd | st.just(b"[" * 5000)))
            elif rows and change == 7 and isinstance(rows[at], dict):
                rows[at] = {name: value for name, value in rows[at].items() if name != draw(names)}
        lines = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
        cut = draw(st.none() | st.integers(0, 30)) if lines else None
        if cut is not None:
            lines[-1] = lines[-1][:cut]
        files.append(lines)
    return files


def check(files: list[list[bytes]], folder: Path) -> str:
    """What became of it; AssertionError where a figure cannot be, any other error but ours is a find."""
    for old in folder.glob("events/*"):
        old.unlink()
    for rank, lines in enumerate(files):
        (folder / "events" / f"rank{rank}.jsonl").write_bytes(b"\n".join(lines))
    Follower(folder / "events" / "rank0.jsonl", len(files)).look()
    try:
        figure = figure_of_folder(folder, KEY, warmup_steps=2, lasted=1e6)
    except (StreamError, TraceError) as error:
        assert "\n" not in str(error) and str(error).isprintable(), f"not one sentence: {error}"
        return "refused"
    assert 0 < figure.throughput < math.inf and 0 < figure.seconds < math.inf
    plain = json.loads(json.dumps(typed_json.encode(figure)))
    typed_json.decode(TrialFigure, plain)
    (result,) = summarize([CaseTrial(KEY, figure, "fuzzed")])
    assert 0 < result.throughput < math.inf
    return "figure"


def attempts(count: int, seed: int) -> tuple[Counter[str], str]:
    """Try `count` streams in this process; what became of them, and the first find at its shortest."""
    signal.signal(signal.SIGPROF, _too_long)
    signal.signal(signal.SIGALRM, _too_long)
    resource.setrlimit(resource.RLIMIT_DATA, (MEGABYTES << 20, resource.RLIM_INFINITY))
    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "events").mkdir()

        @hypothesis.seed(seed)
        @settings(
            max_examples=count,
            deadline=None,
            database=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        @given(stream_of())
        def attempt(files: list[list[bytes]]) -> None:
            signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of CPU time: other work may slow it down
            signal.alarm(20 * SECONDS)
            seen[check(files, Path(name))] += 1
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.alarm(0)

        try:
            attempt()
        except BaseException:  # noqa: BLE001
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.alarm(0)
            return seen, traceback.format_exc()
    return seen, ""


def _attempts(job: tuple[int, int]) -> tuple[Counter[str], str]:
    return attempts(*job)


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz/streams.py")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    began, seen, finds = time.monotonic(), Counter[str](), 0
    chunks = [min(AT_ONCE, options.count - done) for done in range(0, options.count, AT_ONCE)]
    # In processes of their own: what hypothesis remembers of its examples is no memory of ours.
    with multiprocessing.get_context("spawn").Pool(2, maxtasksperchild=1) as pool:
        jobs = [(count, options.seed + number) for number, count in enumerate(chunks)]
        for chunk_seen, find in pool.imap(_attempts, jobs):
            seen += chunk_seen
            finds += bool(find)
            print(find or f"{seen.total()} inputs …", flush=True)
    summary = f"{seen['figure']} figures, {seen['refused']} refused, {time.monotonic() - began:.0f} s"
    print(f"{seen.total()} inputs, {finds} finds ({summary})")
    return 1 if finds else 0


def _too_long(number: int, frame: Any) -> None:
    raise TimeoutError(f"more than {SECONDS} s")


if __name__ == "__main__":
    sys.exit(main())
