"""Whether Trainmark itself, where an interpreter has it, is the same version on every node."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from trainmark.doctor.examined import Examined, most_common
from trainmark.doctor.finding import About, Check, Finding, bad, ok

# A run brings the code that its ranks need; an interpreter need not have it.
NONE = "not installed"


def find(examined: Examined) -> Iterator[Finding]:
    for asked, installations in examined.installed():
        versions = {
            node: installation.packages.get("trainmark", NONE) for node, installation in installations.items()
        }
        usual = most_common(versions)
        pip = f"{shlex.quote(asked.path)} -m pip"
        for node, own in versions.items():
            if own == usual:
                yield ok(node, own if own == NONE else f"{asked.name}: {own}")
                continue
            pinned = shlex.quote(f"trainmark=={usual}")
            mends = "uninstall --yes trainmark" if usual == NONE else f"install {pinned}"
            what = f"Trainmark in {asked.name} is {own}, on the others {usual}"
            yield bad(node, f"{asked.name}: {own}", what, f"on {node}: `{pip} {mends}`")


CHECK = Check("Trainmark", About.SOFTWARE, find, essential=True)
