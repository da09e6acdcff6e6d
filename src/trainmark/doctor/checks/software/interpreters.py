"""Whether each interpreter is there, and of the same Python."""

from __future__ import annotations

from collections.abc import Iterator

from trainmark.doctor.examined import Examined, most_common
from trainmark.doctor.finding import About, Check, Finding, bad, ok
from trainmark.doctor.fixes import reinstalled


def find(examined: Examined) -> Iterator[Finding]:
    for asked, installations in examined.installed():
        usual = most_common({node: installation.version for node, installation in installations.items()})
        for node, _ in examined.facts():
            installation = installations.get(node)
            if installation is None:
                yield bad(
                    node,
                    f"{asked.name}: none",
                    f"no Python answers at {asked.path} ({asked.name})",
                    f"on {node}: "
                    + (f"`{asked.install}`" if asked.install else f"install one as {asked.path}"),
                )
            elif installation.version != usual:
                yield bad(
                    node,
                    f"{asked.name}: {installation.version}",
                    f"{asked.name} runs with Python {installation.version}, on the others with {usual}",
                    reinstalled(node, asked, f"with Python {usual}"),
                )
            else:
                yield ok(node, f"{asked.name}: {installation.version}")


CHECK = Check("interpreters", About.SOFTWARE, find, essential=True)
