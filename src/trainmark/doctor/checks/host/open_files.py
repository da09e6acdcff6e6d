"""Whether a process may open as many files and sockets as it will need."""

from __future__ import annotations

from collections.abc import Iterator

from trainmark.doctor.examined import Examined
from trainmark.doctor.facts import Limit
from trainmark.doctor.finding import About, Check, Finding, ok, warn
from trainmark.doctor.limits import OPEN_FILES, OPEN_FILES_SUGGESTED


def find(examined: Examined) -> Iterator[Finding]:
    for node, facts in examined.facts():
        soft = facts.open_files.soft
        value = "unlimited" if soft is None else f"{soft:,}"
        if soft is None or soft >= OPEN_FILES:
            yield ok(node, value)
        else:
            what = f"a process may open {value} files, and {OPEN_FILES:,} or more are wanted"
            yield warn(node, value, what, f"on {node}: {_fix(facts.open_files)}")


def _fix(limit: Limit) -> str:
    if limit.hard is None or limit.hard >= OPEN_FILES:
        return f"`ulimit -n {min(OPEN_FILES_SUGGESTED, limit.hard or OPEN_FILES_SUGGESTED)}` in ~/.profile"
    return (
        f"`echo '* - nofile {OPEN_FILES_SUGGESTED}' | sudo tee /etc/security/limits.d/nofile.conf`, "
        f"then log in anew; in a container, `--ulimit nofile={OPEN_FILES_SUGGESTED}`"
    )


CHECK = Check("open files", About.HOST, find)
