"""Whether a framework is there, in one version on every node; read from its metadata, none is imported."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from trainmark.doctor.examined import Examined, most_common
from trainmark.doctor.finding import About, Check, Finding, bad, ok
from trainmark.doctor.fixes import reinstalled

FRAMEWORK = re.compile(
    r"torch|tensorflow(-cpu|-gpu)?|jax|jaxlib|mindspore(-gpu)?|paddlepaddle(-gpu)?|mxnet(-cu\d+)?|oneflow"
)

NONE = "no framework"
INSTALL = "`trainmark frameworks install pytorch`; for a program of your own, name its Python with --python"


def find(examined: Examined) -> Iterator[Finding]:
    for asked, installations in examined.installed():
        versions = {
            node: framework_versions(installation.packages) for node, installation in installations.items()
        }
        usual = most_common(versions)
        for node, own in versions.items():
            if own == NONE and examined.wanted.framework:
                yield bad(node, own, f"{asked.path} has no framework, and no built-in suite can run", INSTALL)
            elif own == usual:
                yield ok(node, own)
            else:
                what = f"{asked.name} has {own}, on the others {usual}"
                yield bad(node, own, what, reinstalled(node, asked, f"with {usual}"))


def framework_versions(packages: Mapping[str, str]) -> str:
    versions = [f"{name} {version}" for name, version in packages.items() if FRAMEWORK.fullmatch(name)]
    return ", ".join(sorted(versions)) or NONE


CHECK = Check("framework versions", About.SOFTWARE, find, essential=True)
