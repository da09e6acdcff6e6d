"""Whether there is memory left for a framework, within the limits of a container too."""

from __future__ import annotations

from collections.abc import Iterator

from trainmark.doctor.examined import Examined
from trainmark.doctor.finding import About, Check, Finding, ok, warn
from trainmark.doctor.limits import MEMORY_AVAILABLE_BYTES
from trainmark.doctor.words import size


def find(examined: Examined) -> Iterator[Finding]:
    for node, facts in examined.facts():
        amounts = [facts.host.memory_available, facts.host.memory_limit]
        usable = min((each for each in amounts if each is not None), default=None)
        if usable is None:
            yield ok(node, "not told")
        elif usable < MEMORY_AVAILABLE_BYTES:
            yield warn(
                node,
                size(usable),
                f"{size(usable)} of memory can be had",
                f"on {node}: `ps -eo pid,user,rss,args --sort=-rss | head` names who has it; in a container, "
                "raise `--memory`",
            )
        else:
            yield ok(node, f"{size(usable)} free")


CHECK = Check("memory", About.HOST, find)
