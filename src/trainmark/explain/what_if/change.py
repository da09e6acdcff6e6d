"""One change to a training: what it is called, what it predicts, and how it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from trainmark.explain.what_if.rebuild import Prediction
from trainmark.explain.what_if.situation import Situation

Overrides = Mapping[str, str | int | bool]


def _cannot_be_made(situation: Situation) -> Overrides | None:
    return None


class How(NamedTuple):
    """A line to type or to write, else what to do in words."""

    text: str
    is_line: bool


@dataclass(frozen=True)
class Change:
    """`overrides` are the keys of a suite that make the change, and no other, to one of our workloads.

    Where there are none, `suggestion` may have some that make it together with something else.
    `lines` are what to write in a user's own program, by framework, some made for the situation; "" is for
    all others, which may have `words` instead.
    """

    name: str
    title: str
    predict: Callable[[Situation], Prediction | None]
    words: str = ""
    lines: Mapping[str, str | Callable[[Situation], str]] = field(default_factory=dict)
    overrides: Callable[[Situation], Overrides | None] = _cannot_be_made
    suggestion: Callable[[Situation], Overrides | None] = _cannot_be_made

    @property
    def can_be_made(self) -> bool:
        """Whether a suite can make it, in some case."""
        return self.overrides is not _cannot_be_made

    def how(self, situation: Situation) -> How:
        settings, overrides = situation.settings, self.overrides(situation) or self.suggestion(situation)
        if settings.command and overrides:
            words = (f"--set {key}={_written(value)}" for key, value in overrides.items())
            return How(" ".join([settings.command, *words]), is_line=True)
        own, line = (self._line(name, situation) for name in (settings.framework or "", ""))
        if own and settings.command:
            own = f"{own}  # no setting of {settings.workload} does it"
        line = own or line
        return How(line, is_line=True) if line else How(self.words, is_line=False)

    def _line(self, framework: str, situation: Situation) -> str:
        line = self.lines.get(framework, "")
        return line if isinstance(line, str) else line(situation)


def _written(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"


def milliseconds(seconds: float) -> str:
    """Write a time as sentences do: `12.3 ms`."""
    return f"{1e3 * seconds:.3g} ms"
