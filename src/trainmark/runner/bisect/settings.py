"""Settings and environment variables that differ between a good and a bad side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trainmark.base.errors import UserError
from trainmark.measure.bisection import AS_IN_SUITE, NOT_SET
from trainmark.runner.bisect.subject import BisectSubject, SkippedError
from trainmark.suite import values
from trainmark.suite.load import Override
from trainmark.suite.model import Case, SuiteError
from trainmark.view.message import _

SETTING, VARIABLE = "setting", "variable"


@dataclass(frozen=True)
class SettingDifference:
    """One key with its value on either side; None is the suite's own, or no such variable."""

    kind: str
    key: str
    good: str | None
    bad: str | None

    @property
    def name(self) -> str:
        absent = AS_IN_SUITE if self.kind == SETTING else NOT_SET
        return f"{self.key}={self.bad if self.bad is not None else absent}"


def setting_differences(
    good_set: Sequence[str], bad_set: Sequence[str], good_env: Sequence[str], bad_env: Sequence[str]
) -> tuple[SettingDifference, ...]:
    """Return what differs, in the order of the options; what is alike on both sides is none."""
    kinds = (
        (SETTING, _pairs(good_set, "set"), _pairs(bad_set, "set")),
        (VARIABLE, _pairs(good_env, "env"), _pairs(bad_env, "env")),
    )
    every = [
        SettingDifference(kind, key, good.get(key), bad.get(key))
        for kind, good, bad in kinds
        for key in dict.fromkeys((*good, *bad))
    ]
    return tuple(difference for difference in every if difference.good != difference.bad)


def common_pairs(good: Sequence[str], bad: Sequence[str], option: str) -> dict[str, str]:
    """Return what both sides have alike: it differs in nothing, and still belongs to both."""
    first, second = _pairs(good, option), _pairs(bad, option)
    return {key: value for key, value in first.items() if second.get(key) == value}


def env_lines(text: str, source: str) -> list[str]:
    """Return the NAME=VALUE lines of a file as `env` prints it, or as a .env file has it."""
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        plain = line.strip().removeprefix("export ")
        if not plain or plain.startswith("#"):
            continue
        if "=" not in plain:
            raise UserError(f"{source}:{number}: '{plain[:60]}' is no NAME=VALUE line.")
        lines.append(plain)
    return lines


def _pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    pairs = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UserError(f"'{text}' is no difference; write KEY=VALUE, as in --bad-{option} KEY=VALUE.")
        if option == "env" and not values.VARIABLE.fullmatch(key):
            raise UserError(f"'{key}' cannot name an environment variable.")
        pairs[key.strip()] = value
    return pairs


class SettingSubjects:
    """Sets of differences as subjects: the good side with some of its values taken from the bad one."""

    kind = "settings"

    def __init__(
        self, case_of: Callable[[Sequence[Override]], Case], every: Sequence[SettingDifference]
    ) -> None:
        self.subject = "settings"
        self.differences = tuple(every)
        self.names = tuple(difference.name for difference in every)
        self._case_of = case_of

    def prepare(self, items: tuple[int, ...]) -> BisectSubject:
        variables = {key: value for key, value, _ in self._chosen(items, VARIABLE)}
        try:
            case = self._case_of(self.overrides(items))
        except SuiteError as error:
            reason = str(error).rstrip(".")
            raise SkippedError(_("the suite refuses it: {reason}", reason=reason)) from error
        return BisectSubject(self.subset_name(items), case, environment=variables)

    def overrides(self, items: tuple[int, ...]) -> list[Override]:
        """Return the settings of the good side with these differences applied."""
        return [
            Override(f"{key}={value}", f"--{side}-set {key}={value}")
            for key, value, side in self._chosen(items, SETTING)
        ]

    def _chosen(self, items: tuple[int, ...], kind: str) -> list[tuple[str, str, str]]:
        """Return key, value and side of each difference of a kind that has a value there."""
        sides = [
            (difference.key, difference.bad, "bad")
            if place in items
            else (difference.key, difference.good, "good")
            for place, difference in enumerate(self.differences)
            if difference.kind == kind
        ]
        return [(key, value, side) for key, value, side in sides if value is not None]

    def subset_name(self, items: tuple[int, ...]) -> str:
        if not items:
            return "good"
        if len(items) == len(self.names):
            return "bad"
        return "with-" + "-".join(str(place + 1) for place in items)

    def release(self, used: set[int]) -> None:
        return None

    def notes(self, culprit: int, previous: int) -> tuple[str, ...]:
        return ()
