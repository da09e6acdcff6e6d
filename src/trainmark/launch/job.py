"""What a launcher is given, and what every launcher must be able to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Job:
    """One trial to start: the same command on every rank, each with its own place in the world.

    `folder` is the trial's: `logs/` and `events/` are made below it. `environment` is added to the
    launcher's own; the launcher adds what tells the ranks apart.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    working_folder: Path
    folder: Path
    nodes: int
    ranks_per_node: int

    @property
    def world_size(self) -> int:
        return self.nodes * self.ranks_per_node

    def log(self, rank: int) -> Path:
        return self.folder / "logs" / f"rank{rank}.log"

    def events(self, rank: int) -> Path:
        return self.folder / "events" / f"rank{rank}.jsonl"

    def shell(self) -> str:
        """The command of rank 0 as a person would paste it."""
        import shlex

        assignments = [f"{name}={shlex.quote(value)}" for name, value in self.environment.items()]
        return " ".join([*assignments, shlex.join(self.command)])


@dataclass(frozen=True)
class Exited:
    rank: int
    code: int | None


class Session(Protocol):
    """A started job."""

    root_pid: int | None
    lost_output: OSError | None
    """What kept the ranks' output from being kept whole; None where it is all there."""

    def exits(self, timeout: float) -> list[Exited]:
        """The ranks that left since the last call, in their order; waits at most `timeout`."""

    def lost(self) -> bool:
        """Whether the session itself is gone without the ranks having been seen to leave."""

    def show_stacks(self) -> None:
        """Asks every rank to print where it stands."""

    def stop(self) -> None:
        """Ends every process of the job, on every node; returns when they are gone. Safe to call twice."""


class Launcher(Protocol):
    def start(self, job: Job) -> Session: ...
