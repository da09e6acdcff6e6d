"""Whether memory can be pinned for InfiniBand; without InfiniBand the limit does not matter."""

from __future__ import annotations

from collections.abc import Iterator

from trainmark.doctor.examined import Examined
from trainmark.doctor.finding import About, Check, Finding, bad, ok
from trainmark.doctor.words import size


def find(examined: Examined) -> Iterator[Finding]:
    for node, facts in examined.facts():
        soft = facts.locked_memory.soft
        value = "unlimited" if soft is None else size(soft)
        if soft is not None and facts.infiniband:
            yield bad(
                node,
                value,
                f"a process may lock {value} of memory, and InfiniBand needs all of its buffers locked",
                f"on {node}: `echo '* - memlock unlimited' | sudo tee /etc/security/limits.d/memlock.conf`, "
                "then log in anew; in a container, `--ulimit memlock=-1`; under Slurm, "
                "LimitMEMLOCK=infinity in slurmd's unit",
            )
        else:
            yield ok(node, value)


CHECK = Check("locked memory", About.HOST, find)
