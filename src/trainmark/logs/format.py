"""What a log format is: how its lines look, and what each of their numbers means.

A format is data: regular expressions over bytes with named groups. Adding one is one file in `formats/`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

from trainmark.events import Scope

# The groups that a progress line may name. `wall` is a time of day, `seconds` and `ms` last as long as
# one step, `rate` is what the program calls its speed, `samples` counts all that the line reports,
# `step_samples` those of one step.
STEP_GROUPS = frozenset(
    {
        "epoch",
        "step",
        "last_step",
        "wall",
        "rate",
        "seconds",
        "ms",
        "samples",
        "step_samples",
        "loss",
        "lr",
        "top1",
        "top5",
        "rank",
    }
)


# Settings that make samples of steps, or of one device's rate that of all.
COUNTS = frozenset(
    {
        "batch_per_device",
        "global_batch",
        "accumulation",
        "samples_per_step",
        "world_size",
        "nodes",
        "devices_per_node",
    }
)


class Kind(str, Enum):
    """What a printed rate or time averages over."""

    INSTANT = "instant"  # this step alone
    SINCE_LAST = "since-last"  # the steps since the line before
    CUMULATIVE = "cumulative"  # everything since the run (or epoch) began


class TimeFormat(str, Enum):
    """How `wall` is written."""

    UNIX = "unix"  # 1599761677.65
    UNIX_MS = "unix-ms"
    ISO = "iso"  # 2020-12-16 11:32:20.234886, also with T or /, also with a comma before the fraction
    TIME_OF_DAY = "time-of-day"  # 08:02:33,385; the date is missing


@dataclass(frozen=True)
class Rate:
    """What the program means by its speed: a scope of RANK is multiplied by the ranks, GLOBAL is not."""

    unit: str = "samples"
    scope: Scope = Scope.GLOBAL
    kind: Kind = Kind.INSTANT
    every_rank: bool = False


@dataclass(frozen=True)
class Setting:
    """One fact about the run, from the first line that matches: the group `value`, or a fixed `means`.

    A count that is told only after the first progress line may be of the next run, and is not taken unless it
    may come `late`.

    Names that are understood: batch_per_device, global_batch, accumulation (batches a step),
    samples_per_step (in the unit of the format), world_size, nodes, devices_per_node, precision, loss_scale,
    framework, framework_version, device, layout, momentum, learning_rate; unit and scope, where they are not
    the same in every log of the format; ended, a word on how the run was cut short.
    """

    name: str
    text: str
    means: Any = None
    convert: Callable[[str], Any] = str
    late: bool = False

    @cached_property
    def pattern(self) -> re.Pattern[bytes]:
        return re.compile(self.text.encode())


@dataclass(frozen=True)
class Format:
    """`patterns` are texts by what they find, each compiled when it is first used.

    `sign` matches what no other format has; one match of `step` is one report of progress. `start` is where a
    run begins, `evaluation` what was evaluated; `summary` names what the program itself concludes (groups
    `rate`, `seconds`, `top1`): it is shown, never used.
    `sign_once`: the sign stands at the top of the file and nowhere else, so that one match is enough.
    `steps_a_line` says how many steps a line stands for where the step numbers do not tell. `replace` holds
    what is replaced in every block, and by what; then `rewrite` turns the blocks into lines of ours where one
    line of theirs does not tell enough by itself.
    Of formats whose lines stand in one log, the one of higher `precedence` is read: below 0 are libraries
    whose programs have lines of their own, above 0 records that a program writes beside those.
    """

    name: str
    title: str
    framework: str | None
    patterns: Mapping[str, str]
    rate: Rate = Rate()
    clock: TimeFormat = TimeFormat.ISO
    settings: tuple[Setting, ...] = ()
    steps_a_line: int = 1
    replace: Mapping[str, str] | None = None
    rewrite: Callable[[Iterable[bytes]], Iterator[bytes]] | None = None
    precedence: int = 0
    sign_once: bool = False

    @cached_property
    def sign(self) -> re.Pattern[bytes]:
        return self._pattern("sign") or self.step

    @cached_property
    def step(self) -> re.Pattern[bytes]:
        return re.compile(self.patterns["step"].encode())

    @cached_property
    def start(self) -> re.Pattern[bytes] | None:
        return self._pattern("start")

    @cached_property
    def evaluation(self) -> re.Pattern[bytes] | None:
        return self._pattern("evaluation")

    @cached_property
    def summary(self) -> re.Pattern[bytes] | None:
        return self._pattern("summary")

    def _pattern(self, name: str) -> re.Pattern[bytes] | None:
        return re.compile(self.patterns[name].encode()) if name in self.patterns else None

    def prepare(self, block: bytes) -> bytes:
        """The block with its replacements made."""
        for text, other in (self.replace or {}).items():
            block = re.sub(text.encode(), other.encode(), block)
        return block
