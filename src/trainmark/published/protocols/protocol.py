"""What a named protocol is: whose rule, its usual window, and how it turns a folder of logs into a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainmark.errors import UserError
from trainmark.published.protocols.doubt import ProtocolDoubt


class RuleStopsError(UserError):
    """The rule cannot be applied to these logs: the program it comes from ends here with a traceback."""


@dataclass(frozen=True)
class Window:
    """The counts that a rule is called with: it ignores `warmup` batches and ends at batch `train`."""

    warmup: int
    train: int


@dataclass(frozen=True)
class Reading:
    """`table` is their result to the digit; `doubts` say where it is wrong; `ours` is the right one."""

    table: dict[str, Any]
    doubts: list[ProtocolDoubt] = field(default_factory=list)
    ours: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Protocol:
    """`window` is None where the rule takes no counts."""

    name: str
    title: str
    source: str
    window: Window | None
    read: Callable[[Path, Window], Reading]
    smallest_warmup: int = 0
    multiple: int = 1

    def chosen_window(self, warmup: int | None, train: int | None) -> Window:
        """The usual window, or the one asked for, refused where their program refuses it."""
        if self.window is None:
            if warmup is not None or train is not None:
                raise UserError(f"{self.name} takes no --warmup or --train: its window is part of the rule.")
            return Window(0, 0)
        window = Window(
            self.window.warmup if warmup is None else warmup, self.window.train if train is None else train
        )
        if window.warmup < self.smallest_warmup:
            raise UserError(
                f"{self.name} needs --warmup of at least {self.smallest_warmup}, not {window.warmup}."
            )
        if window.train <= window.warmup:
            raise UserError(
                f"{self.name} needs --train above --warmup; got {window.train} after {window.warmup}."
            )
        if window.warmup % self.multiple or window.train % self.multiple:
            raise UserError(f"{self.name} needs --warmup and --train to be multiples of {self.multiple}.")
        return window
