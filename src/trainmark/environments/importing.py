"""Does a framework import, and which version says it is there?"""

from __future__ import annotations

from trainmark.environments.pip import unswayed
from trainmark.environments.process import run

SECONDS = 300.0
MARK = "trainmark-imported "
ASK = "import sys, {0}; sys.stdout.write('\\n' + {1!r} + str({0}.__version__) + '\\n')"


def imported_version(python: str, name: str, *, limit: float = SECONDS) -> tuple[str | None, str | None]:
    """The version, or None and what it said last; in a process of its own, whatever that does."""
    answers: list[str] = []

    def line(text: str) -> None:
        if text.startswith(MARK):
            answers[:] = [text.removeprefix(MARK).strip()]

    program = [python, "-c", ASK.format(name, MARK)]
    try:
        ended = run(program, line, limit=limit, environment=unswayed())
    except OSError as error:
        return None, f"{python} does not start: {error.strerror}"
    if answers and ended.code == 0:
        return answers[0], None
    if ended.code is None:
        return None, f"import {name} did not come to an end within {limit:.0f} s"
    if ended.code < 0:
        return None, f"import {name}: {ended.how}"
    return None, ended.last_line
