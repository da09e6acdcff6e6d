"""Versions of a package between a good and a bad one, each installed into an environment of its own."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmark.base.errors import UserError, nearest
from trainmark.base.files import write_text
from trainmark.machine.child_process import ProcessExit, run
from trainmark.machine.frameworks.interpreters import ONLY_WHEELS, PIP_INSTALL, without_pip_variables
from trainmark.runner.bisect.subject import BisectSubject, SkippedError
from trainmark.suite.model import Case
from trainmark.view.message import _

REQUIREMENT = re.compile(
    r"([A-Za-z0-9][A-Za-z0-9._-]*)(\[[A-Za-z0-9,._ -]+\])?\s*==\s*([A-Za-z0-9][\w.+!-]*)"
)
AVAILABLE = re.compile(r"\s*Available versions: (.+)")
ERROR = re.compile(r"\s*ERROR: (.+)")
NO_WHEEL = re.compile(r"No matching distribution found for (\S+)")
INDEX_SECONDS, VENV_SECONDS, INSTALL_SECONDS = 300.0, 600.0, 3600.0
ATTEMPTS = 2  # a download that broke off is tried once more
# What no second attempt mends.
FINAL = re.compile(r"has no wheel of|ResolutionImpossible|requires a different Python|not a supported wheel")
LOCK, LOG = "lock.txt", "pip.log"


@dataclass(frozen=True)
class Requirement:
    """`torch==2.9.1`, or with extras `jax[cuda12]==0.4.30`."""

    package: str
    extras: str
    version: str

    def at(self, version: str) -> str:
        return f"{self.package}{self.extras}=={version}"


def parse_requirement(text: str) -> Requirement | None:
    """Return the package and its version; None where the text is something else, such as a commit."""
    match = REQUIREMENT.fullmatch(text.strip())
    return match and Requirement(match[1], match[2] or "", match[3])


def versions_between(good: Requirement, bad: Requirement, python: str, *, pre: bool = False) -> list[str]:
    """Return the versions that the package index has for this Python, from good to bad.

    The order is pip's own, by version; good may be the later one, where an improvement is looked for.
    """
    if _plain(good.package) != _plain(bad.package):
        raise UserError(
            f"--good names {good.package} and --bad {bad.package}; give two versions of one package."
        )
    lines: list[str] = []
    words = ["index", "versions", good.package, *(["--pre"] if pre else [])]
    ended = run(
        [python, "-m", "pip", *words], lines.append, limit=INDEX_SECONDS, environment=without_pip_variables()
    )
    listed = next((match[1] for line in lines if (match := AVAILABLE.match(line))), None)
    if ended.code != 0 or listed is None:
        raise UserError(f"the versions of {good.package} cannot be listed: {_error(ended)}.")
    known = [version.strip() for version in reversed(listed.split(","))]
    places = [_place(known, requirement) for requirement in (good, bad)]
    if places[0] == places[1]:
        raise UserError(f"--good and --bad are the same version, {good.version}.")
    first, last = sorted(places)
    between = known[first : last + 1]
    return between if places[0] == first else between[::-1]


def _place(known: Sequence[str], requirement: Requirement) -> int:
    if requirement.version not in known:
        hint = nearest(requirement.version, known)
        raise UserError(
            f"the package index has no {requirement.at(requirement.version)} for this Python{hint}"
        )
    return known.index(requirement.version)


def _plain(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


class PackageSubjects:
    """The versions as subjects. An environment is whole once its lock is written; else it is made anew."""

    kind = "versions"

    def __init__(
        self,
        case: Case,
        good: Requirement,
        versions: Sequence[str],
        folder: Path,
        python: str = sys.executable,
        beside: Sequence[str] = (),
    ) -> None:
        self.subject = good.package
        self.names = tuple(versions)
        self._case, self._requirement, self._folder = case, good, folder
        self._python, self._beside = python, tuple(beside)

    def prepare(self, items: tuple[int, ...]) -> BisectSubject:
        version = self.names[items[0]]
        place = self._folder / version
        if not (place / LOCK).is_file():
            self._install(version, place)
        return BisectSubject(version, self._case, python=(place / "bin" / "python").absolute())

    def release(self, used: set[int]) -> None:
        """Remove environments of versions that were judged; their locks stay."""
        for item, version in enumerate(self.names):
            place = self._folder / version
            if item not in used and (place / LOCK).is_file():
                (place / LOCK).rename(self._folder / f"{version}.{LOCK}")  # from now on it is not whole
                shutil.rmtree(place)

    def notes(self, culprit: int, previous: int) -> tuple[str, ...]:
        """Name the packages beside the bisected one that came along in other versions."""
        before, after = (self.lock(item) for item in (previous, culprit))
        own = _plain(self.subject)
        changed = [
            f"{name} {before.get(name, 'absent')} → {after.get(name, 'absent')}"
            for name in sorted(before.keys() | after.keys())
            if name != own and before.get(name) != after.get(name)
        ]
        if not changed:
            return ()
        return (_("Installed with it in another version: {packages}.", packages=", ".join(changed)),)

    def lock(self, item: int) -> dict[str, str]:
        """Return the packages of an environment and their versions."""
        version = self.names[item]
        places = (self._folder / version / LOCK, self._folder / f"{version}.{LOCK}")
        text = next((place.read_text(encoding="utf-8") for place in places if place.is_file()), "")
        pins = (line.partition("==") for line in text.splitlines() if "==" in line)
        return {_plain(name): pinned for name, _, pinned in pins}

    def _install(self, version: str, place: Path) -> None:
        for _attempt in range(ATTEMPTS):
            shutil.rmtree(place, ignore_errors=True)
            place.parent.mkdir(parents=True, exist_ok=True)
            reason = self._attempt(version, place)
            if reason is None:
                return
            shutil.rmtree(place, ignore_errors=True)
            if FINAL.search(reason):
                break
        raise SkippedError(_("it does not install: {reason}", reason=reason))

    def _attempt(self, version: str, place: Path) -> str | None:
        """Make the environment and freeze it; return why it could not be made."""
        commands = [
            ([self._python, "-m", "venv", str(place)], VENV_SECONDS),
            (
                [
                    *(str(place / "bin" / "python"), *PIP_INSTALL, *ONLY_WHEELS),
                    *(self._requirement.at(version), *self._beside),
                ],
                INSTALL_SECONDS,
            ),
        ]
        lines: list[str] = []
        for command, limit in commands:
            ended = run(
                command, lines.append, limit=limit, environment=without_pip_variables(), together=True
            )
            if ended.code != 0:
                error = _error(ended)
                missing = NO_WHEEL.search(error)
                if missing is None:
                    return error.rstrip(".")
                return _("the package index has no wheel of {package} for this Python", package=missing[1])
        write_text(place / LOG, "\n".join(lines) + "\n")
        pins: list[str] = []
        freeze = [str(place / "bin" / "python"), "-m", "pip", "freeze", "--all"]
        ended = run(freeze, pins.append, limit=VENV_SECONDS, environment=without_pip_variables())
        if ended.code != 0:
            return _error(ended)
        write_text(place / LOCK, "\n".join(pins) + "\n")
        return None


def _error(ended: ProcessExit) -> str:
    """Return pip's last error: what follows it is often a hint or a notice."""
    matches = [match[1] for line in ended.errors.splitlines() if (match := ERROR.match(line))]
    return (matches[-1] if matches else ended.last_line).rstrip(".")
