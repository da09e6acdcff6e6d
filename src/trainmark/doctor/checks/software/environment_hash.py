"""Whether all that is installed in an interpreter is the same on every node, to the byte."""

from __future__ import annotations

from collections.abc import Iterator

from trainmark.doctor.examined import Examined, most_common
from trainmark.doctor.facts import Installed
from trainmark.doctor.finding import About, Check, Finding, bad, ok
from trainmark.doctor.fixes import reinstalled

SHOWN_DIGITS = 8
SHOWN_PACKAGES = 5


def find(examined: Examined) -> Iterator[Finding]:
    for asked, installations in examined.installed():
        usual = most_common({node: installation.hash for node, installation in installations.items()})
        model = next(
            (installation for installation in installations.values() if installation.hash == usual), None
        )
        for node, installation in installations.items():
            value = f"{asked.name}: {installation.hash[:SHOWN_DIGITS]}"
            if model is None or installation.hash == model.hash:
                yield ok(node, value)
            else:
                what = f"{asked.name} is not what the others have: {differences(installation, model)}"
                yield bad(node, value, what, reinstalled(node, asked, "from the pins of the others"))


def differences(own: Installed, model: Installed) -> str:
    """`numpy 2.1.0, others 2.2.0; …`, or that only the files' contents differ."""
    differing = [f"Python {own.version}, others {model.version}"] if own.version != model.version else []
    for name in sorted({*own.packages, *model.packages}):
        here, there = own.packages.get(name, "missing"), model.packages.get(name, "missing")
        if here != there:
            differing.append(f"{name} {here}, others {there}")
    more = [f"and {len(differing) - SHOWN_PACKAGES} more"] if len(differing) > SHOWN_PACKAGES else []
    return "; ".join(differing[:SHOWN_PACKAGES] + more) or "the same versions, but not the same files"


CHECK = Check("environment hash", About.SOFTWARE, find, essential=True)
