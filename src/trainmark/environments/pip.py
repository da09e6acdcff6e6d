"""pip at work: how far it is, and what went wrong in one sentence."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from trainmark.environments.locks import Lock, here
from trainmark.environments.process import run

COMMAND = ("-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar", "off")
# A package that must be compiled fails late and darkly; one without a wheel is named at once.
ONLY_WHEELS = ("--only-binary", ":all:")
# What would send packages elsewhere than into the environment, or bring others in.
ASTRAY = ("PYTHONPATH", "PYTHONHOME", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT")

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


class Following:
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


def fill(python: Path, lock: Lock, log: Path, progress: Progress, descriptors: Sequence[int]) -> str | None:
    """Installs the lock's packages; None, or the sentence that says why it could not."""
    following = Following(lock, progress)
    with log.open("w", encoding="utf-8", errors="replace") as log_file:

        def line(text: str) -> None:
            log_file.write(f"{text}\n")
            following.line(text)

        ended = run(
            [str(python), *COMMAND, *ONLY_WHEELS, "-r", str(lock.path)],
            line,
            environment=unswayed(),
            together=True,
            descriptors=descriptors,
        )
    if ended.code == 0:
        return None
    return cause(following.causes, lock, python) or following.error or ended.last_line


def cause(errors: Sequence[str], lock: Lock, python: Path) -> str | None:
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


def unswayed() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ASTRAY}
