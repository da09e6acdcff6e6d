"""Pythons of environments: which is chosen, what pip installs into it, whether a framework imports."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from trainmark.base.errors import UserError
from trainmark.machine.child_process import run
from trainmark.machine.frameworks.locks import Lock, here

PIP_INSTALL = ("-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar", "off")
# A package that must be compiled fails late and darkly; one without a wheel is named at once.
ONLY_WHEELS = ("--only-binary", ":all:")
# What would send packages elsewhere than into the environment, or bring others in.
DIVERTING_VARIABLES = ("PYTHONPATH", "PYTHONHOME", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT")

COLLECTING = re.compile(r"(?:Collecting|Requirement already satisfied:) ([A-Za-z][\w.-]*)")
PROCESSING = re.compile(r"Processing (?:\S*/)?([A-Za-z]\w*)-\S+\.whl")  # a wheel from a folder
DOWNLOADING = re.compile(r"\s*Downloading (?:\S*/)?([A-Za-z]\w*)-\S+ \(([\d.]+ \w+)\)")
INSTALLING = re.compile(r"Installing collected packages: (.+)")

Progress = Callable[[int, int, str], None]

# The first that pip's words match names the cause; the order goes from the certain to the vague.
CAUSES: tuple[tuple[str, str], ...] = (
    (r"No space left on device|Disk quota exceeded", "the disk is full; make room, also in {temporary}"),
    (r"THESE PACKAGES DO NOT MATCH THE HASHES", "a package is not the one that was locked"),
    (r"ResolutionImpossible|conflicting dependencies", "the pins of {lock} contradict each other"),
    (
        r"NewConnectionError|ConnectTimeout|ReadTimeout|Read timed out|Temporary failure in name resolution|"
        r"Network is unreachable|Connection (?:refused|reset|aborted|broken)|Max retries exceeded|"
        r"SSLError|ProxyError|IncompleteRead",
        "the package index was not reached; check the network and pip's settings, then install again "
        "(what was downloaded is kept)",
    ),
    (
        r"No matching distribution found for (?P<what>\S+)|"
        r"is not a supported wheel on this platform|requires a different Python",
        "the package index has no wheel of {what} for Python {python} on {platform}; name another Python "
        "with --python, or the index with pip's own settings",
    ),
)


class PipProgress:
    """Reads pip's lines: counts packages, and keeps the last error."""

    def __init__(self, lock: Lock, progress: Progress) -> None:
        self._total = len(lock.pins)
        self._seen: dict[str, None] = {}
        self._progress = progress
        self.error: str | None = None
        self.causes: list[str] = []

    def line(self, text: str) -> None:
        if match := COLLECTING.match(text) or PROCESSING.match(text):
            self._seen[match[1].lower().replace("_", "-")] = None
            self._tell(match[1])
        elif match := DOWNLOADING.match(text):
            self._tell(f"{match[1].replace('_', '-')}, {match[2]}")
        elif match := INSTALLING.match(text):
            self._tell(f"unpacking {len(match[1].split(','))}")
        if "ERROR" in text or "Error" in text or "error:" in text:
            self.error = text.strip()
            self.causes = [*self.causes[-20:], self.error]

    def _tell(self, what: str) -> None:
        self._progress(len(self._seen), max(self._total, len(self._seen)), what)


def install_packages(
    python: Path, lock: Lock, log: Path, progress: Progress, descriptors: Sequence[int]
) -> str | None:
    """Installs the lock's packages; None, or the sentence that says why it could not."""
    following = PipProgress(lock, progress)
    with log.open("w", encoding="utf-8", errors="replace") as log_file:

        def line(text: str) -> None:
            log_file.write(f"{text}\n")
            following.line(text)

        ended = run(
            [str(python), *PIP_INSTALL, *ONLY_WHEELS, "-r", str(lock.path)],
            line,
            environment=without_pip_variables(),
            together=True,
            descriptors=descriptors,
        )
    if ended.code == 0:
        return None
    return failure_cause(following.causes, lock, python) or following.error or ended.last_line


def failure_cause(errors: Sequence[str], lock: Lock, python: Path) -> str | None:
    text = "\n".join(errors)
    for pattern, sentence in CAUSES:
        if match := re.search(pattern, text):
            what = match.groupdict().get("what") or "one of its packages"
            lib = next(python.parents[1].glob("lib/python3*"), Path("python3"))
            return sentence.format(
                what=what,
                python=lib.name.removeprefix("python"),
                platform=here(),
                lock=lock.path.name,
                temporary=os.environ.get("TMPDIR", "/tmp"),
            )
    return None


def without_pip_variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in DIVERTING_VARIABLES}


VERSION_SECONDS = 30.0
ASK_VERSION = "import sys; print('python', *sys.version_info[:3], sep='.')"


def version_of(python: str) -> str | None:
    """`3.11.7`, or None where it does not answer as Python does."""
    output: list[str] = []
    try:
        # Isolated: nothing of the user's is imported only to learn a version.
        ended = run([python, "-I", "-c", ASK_VERSION], output.append, limit=VERSION_SECONDS)
    except OSError:
        return None
    answers = [line.removeprefix("python.").strip() for line in output[-20:] if line.startswith("python.")]
    return answers[-1] if ended.code == 0 and answers else None


def named(asked: str) -> tuple[str, str]:
    """The path and the version of an interpreter that a person has named."""
    path = shutil.which(asked)
    version = version_of(path) if path else None
    if path is None or version is None:
        raise UserError(f"{asked} did not answer as Python does: check `{asked} --version`.")
    return path, version


def choose_python(lock: Lock, asked: str | None) -> str:
    """The one asked for, else Trainmark's own, else the newest found; always one that the lock takes."""
    if asked is not None:
        path, version = named(asked)
        if not lock.takes(_minor_version(version)):
            raise UserError(
                f"{lock.name} {lock.version} needs Python {lock.pythons}, and {asked} is Python {version}; "
                "name another with --python."
            )
        return path
    if lock.takes(sys.version_info[:2]):
        return sys.executable
    for candidate in _candidate_pythons(lock):
        answer = version_of(candidate)
        if answer is not None and lock.takes(_minor_version(answer)):
            return candidate
    raise UserError(
        f"{lock.name} {lock.version} needs Python {lock.pythons}, and none was found: install one (by "
        f"`pyenv install 3.{lock.highest}`, say) or name it with --python PATH."
    )


def _candidate_pythons(lock: Lock) -> Iterator[str]:
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for minor in range(min(lock.highest, 30), lock.lowest - 1, -1):
        if python := shutil.which(f"python3.{minor}"):
            yield python
        yield from sorted((str(path) for path in pyenv.glob(f"3.{minor}.*/bin/python")), reverse=True)


def _minor_version(version: str) -> tuple[int, int]:
    major, minor, *_ = version.split(".")
    return int(major), int(minor)


IMPORT_SECONDS = 300.0
IMPORT_MARK = "trainmark-imported "
ASK_IMPORT = "import sys, {0}; sys.stdout.write('\\n' + {1!r} + str({0}.__version__) + '\\n')"


def imported_version(
    python: str, name: str, *, limit: float = IMPORT_SECONDS
) -> tuple[str | None, str | None]:
    """The version, or None and what it said last; in a process of its own, whatever that does."""
    answers: list[str] = []

    def line(text: str) -> None:
        if text.startswith(IMPORT_MARK):
            answers[:] = [text.removeprefix(IMPORT_MARK).strip()]

    program = [python, "-c", ASK_IMPORT.format(name, IMPORT_MARK)]
    try:
        ended = run(program, line, limit=limit, environment=without_pip_variables())
    except OSError as error:
        return None, f"{python} does not start: {error.strerror}"
    if answers and ended.code == 0:
        return answers[0], None
    if ended.code is None:
        return None, f"import {name} did not come to an end within {limit:.0f} s"
    if ended.code < 0:
        return None, f"import {name}: {ended.how}"
    return None, ended.last_line
