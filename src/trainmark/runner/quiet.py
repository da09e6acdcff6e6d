"""Whether the machines are busy with other work: told after the first trial, waited for before each."""

from __future__ import annotations

import inspect
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmark.events import DeviceSample, stream
from trainmark.launch.asking import AskNodes
from trainmark.launch.launcher import ClusterLauncher
from trainmark.machine import load_on_node
from trainmark.machine.sampler import Sampler
from trainmark.measure.doubts import DoubtCode
from trainmark.measure.figure import TrialFigure
from trainmark.measure.figure_doubts import HOST_BUSY_SHARE, sample_doubts

LOOK_SECONDS = 3.0
ANSWER_SECONDS = 60.0
SECONDS_BETWEEN_NOTES = 30.0
DISTURBED = (DoubtCode.HOST_BUSY, DoubtCode.DEVICE_SHARED)


@dataclass
class QuietWait:
    """`left` seconds may be spent in a run on waiting until nothing else works on its machines."""

    left: float

    def wait(
        self, look: Callable[[], str], note: Callable[[str], None], stop_asked: Callable[[], bool]
    ) -> None:
        """Return once `look` has nothing to say, the time is spent, or the user stops."""
        noted = 0.0
        while self.left > 0 and not stop_asked():
            began = time.monotonic()
            disturbance = look()
            self.left -= time.monotonic() - began
            if not disturbance:
                return
            if self.left <= 0:
                note(
                    f"{disturbance}; --wait-quiet has waited as long as it may: the run goes on all the same"
                )
            elif not noted or began - noted >= SECONDS_BETWEEN_NOTES:
                noted = began
                left = f"{self.left / 60:.0f} min" if self.left >= 120 else f"{self.left:.0f} s"
                note(f"waiting for a quiet machine, {left} at most: {disturbance}")


def disturbance(gpus: Sequence[int], cluster: ClusterLauncher | None = None) -> str:
    """Return what would spoil a trial that began now, by the rules of its doubts; empty if nothing would."""
    return "; ".join(_on_nodes(cluster) if cluster is not None else _here(gpus))


def told_after(figure: TrialFigure, is_here: bool) -> str:
    """Return a sentence where other work disturbed a trial, with who is busy now; else an empty one."""
    doubts = [doubt.message for doubt in figure.doubts if doubt.code in DISTURBED]
    if not doubts:
        return ""
    who = _named(load_on_node.busy_with(1.0)) if is_here else ""
    return (
        f"{' '.join(doubts)}{f' Busy now: {who}.' if who else ''} The run goes on; Ctrl-C stops it, and "
        "--wait-quiet 30m waits for a quiet machine before each trial."
    )


def _here(gpus: Sequence[int]) -> Iterator[str]:
    with ExitStack() as stack:
        path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "samples.jsonl"
        with Sampler(path, device_indices=gpus):
            known = load_on_node.busy_with(LOOK_SECONDS)
        rows = [row for row in stream.read(path) if isinstance(row, DeviceSample)] if path.exists() else []
    codes = {doubt.code for doubt in sample_doubts(rows)}
    if DoubtCode.HOST_BUSY in codes:
        yield _busy("the host", known)
    if DoubtCode.DEVICE_SHARED in codes:
        devices = sorted({row.device for row in rows if row.foreign_processes})
        yield f"other processes use {', '.join(devices)}"


def _on_nodes(launcher: ClusterLauncher) -> Iterator[str]:
    """Their processors; a node that does not answer is the launcher's matter."""
    ask = AskNodes(launcher)
    program = inspect.getsource(load_on_node)
    for reply in ask(program, [{"seconds": LOOK_SECONDS}] * len(ask.nodes), ANSWER_SECONDS):
        if reply.answer is not None and float(reply.answer.get("share", 0.0)) > HOST_BUSY_SHARE:
            yield _busy(reply.node, reply.answer)


def _busy(place: str, known: dict[str, Any]) -> str:
    who = _named(known)
    return f"{place} is {known['share']:.0%} busy with other processes{f' ({who})' if who else ''}"


def _named(known: dict[str, Any]) -> str:
    """`cc1plus × 8 61 %, python 12 %`, as shares of the machine."""
    return ", ".join(
        f"{name}{f' × {count}' if count > 1 else ''} {share:.0%}" for name, count, share in known["busiest"]
    )
