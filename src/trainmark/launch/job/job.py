"""What a launcher is given, and what every launcher must be able to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from trainmark.secret import without_secrets


@dataclass(frozen=True)
class Job:
    """One trial to start: the same command on every rank, each with its own place in the world.

    `folder` is the trial's: `logs/` and `events/` are made below it. `environment` is added to the
    launcher's own; the launcher adds what tells the ranks apart. `gpus`: whether each rank trains on one.
    `starts_own_ranks`: a program that is left alone, with all the GPUs and none of the ranks' variables.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    working_folder: Path
    folder: Path
    nodes: int
    ranks_per_node: int
    gpus: bool = False
    starts_own_ranks: bool = False
    programs: Path | None = None
    """A folder of programs to be found before others of their names, where the ranks run on this machine."""

    @property
    def world_size(self) -> int:
        return self.nodes * self.ranks_per_node

    def log(self, rank: int) -> Path:
        return self.folder / "logs" / f"rank{rank}.log"

    def events(self, rank: int) -> Path:
        return self.folder / "events" / f"rank{rank}.jsonl"

    def profile_progress(self, rank: int) -> Path:
        """A file that grows while a rank takes the steps of its profile; see trainmark.profiler.capture."""
        return self.folder / "profile" / f"rank{rank}.alive"

    def placed(self, variables: Mapping[str, str]) -> Job:
        """The same with the variables of one rank."""
        return replace(self, environment={**self.environment, **variables})

    def shell(self) -> str:
        """The command of rank 0 as a person would paste it; secrets stay out."""
        import shlex

        shown = without_secrets(self.environment)
        assignments = [f"{name}={shlex.quote(value)}" for name, value in shown.items()]
        return " ".join([*assignments, shlex.join(self.command)])


@dataclass(frozen=True)
class Exited:
    """`oom_kills` is how often the kernel of its node ended a process for want of memory meanwhile."""

    rank: int
    code: int | None
    oom_kills: int = 0


@dataclass(frozen=True)
class Loss:
    """What took ranks away that did not leave by themselves; no node where it is this machine."""

    node: str | None
    reason: str


class Session(Protocol):
    """A started job."""

    root_pid: int | None
    lost_output: OSError | None
    """What kept the ranks' output from being kept whole; None where it is all there."""

    def exits(self, timeout: float) -> list[Exited]:
        """The ranks that left since the last call, in their order; waits at most `timeout`."""

    def node_of(self, rank: int) -> str | None:
        """The node's name; None where there is only this machine."""

    def lost(self) -> Loss | None:
        """What took the session or a node of it away without its ranks having been seen to leave."""

    def doubtful(self) -> bool:
        """Whether a node may be about to turn out lost."""

    def show_stacks(self) -> None:
        """Asks every rank to print where it stands."""

    def stop(self) -> None:
        """Ends every process of the job, on every node; returns when they are gone. Safe to call twice."""


class Launcher(Protocol):
    def start(self, job: Job) -> Session:
        """NodeError where a node that the job needs cannot be used."""

    def shipped(self, folder: Path) -> AbstractContextManager[None]:
        """While it lasts, every node has a copy of the folder, which its path in a job stands for."""

    def shown(self, job: Job) -> Sequence[tuple[str, str]]:
        """Each node and the command that a person would type there."""
