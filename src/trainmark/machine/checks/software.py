"""Interpreters, frameworks and packages, and the dataset, the same on every node."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

from trainmark.machine.examination import Examination, NodeDataset, NodeInstallation, most_common
from trainmark.machine.findings import CheckArea, NodeCheck, NodeFinding, bad, format_bytes, ok, reinstall_fix


def find_interpreters(examined: Examination) -> Iterator[NodeFinding]:
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
                    reinstall_fix(node, asked, f"with Python {usual}"),
                )
            else:
                yield ok(node, f"{asked.name}: {installation.version}")


INTERPRETERS = NodeCheck("interpreters", CheckArea.SOFTWARE, find_interpreters, essential=True)


FRAMEWORK = re.compile(
    r"torch|tensorflow(-cpu|-gpu)?|jax|jaxlib|mindspore(-gpu)?|paddlepaddle(-gpu)?|mxnet(-cu\d+)?|oneflow"
)

NO_FRAMEWORK = "no framework"
INSTALL = "`trainmark frameworks install pytorch`; for a program of your own, name its Python with --python"


def find_framework_versions(examined: Examination) -> Iterator[NodeFinding]:
    for asked, installations in examined.installed():
        versions = {
            node: framework_versions(installation.packages) for node, installation in installations.items()
        }
        usual = most_common(versions)
        for node, own in versions.items():
            if own == NO_FRAMEWORK and examined.wanted.framework:
                yield bad(node, own, f"{asked.path} has no framework, and no built-in suite can run", INSTALL)
            elif own == usual:
                yield ok(node, own)
            else:
                what = f"{asked.name} has {own}, on the others {usual}"
                yield bad(node, own, what, reinstall_fix(node, asked, f"with {usual}"))


def framework_versions(packages: Mapping[str, str]) -> str:
    versions = [f"{name} {version}" for name, version in packages.items() if FRAMEWORK.fullmatch(name)]
    return ", ".join(sorted(versions)) or NO_FRAMEWORK


FRAMEWORK_VERSIONS = NodeCheck(
    "framework versions", CheckArea.SOFTWARE, find_framework_versions, essential=True
)


SHOWN_DIGITS = 8
SHOWN_PACKAGES = 5


def find_environment_hash(examined: Examination) -> Iterator[NodeFinding]:
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
                yield bad(node, value, what, reinstall_fix(node, asked, "from the pins of the others"))


def differences(own: NodeInstallation, model: NodeInstallation) -> str:
    """`numpy 2.1.0, others 2.2.0; …`, or that only the files' contents differ."""
    differing = [f"Python {own.version}, others {model.version}"] if own.version != model.version else []
    for name in sorted({*own.packages, *model.packages}):
        here, there = own.packages.get(name, "missing"), model.packages.get(name, "missing")
        if here != there:
            differing.append(f"{name} {here}, others {there}")
    more = [f"and {len(differing) - SHOWN_PACKAGES} more"] if len(differing) > SHOWN_PACKAGES else []
    return "; ".join(differing[:SHOWN_PACKAGES] + more) or "the same versions, but not the same files"


ENVIRONMENT_HASH = NodeCheck("environment hash", CheckArea.SOFTWARE, find_environment_hash, essential=True)


# A run brings the code that its ranks need; an interpreter need not have it.
NOT_INSTALLED = "not installed"


def find_package(examined: Examination) -> Iterator[NodeFinding]:
    for asked, installations in examined.installed():
        versions = {
            node: installation.packages.get("trainmark", NOT_INSTALLED)
            for node, installation in installations.items()
        }
        usual = most_common(versions)
        pip = f"{shlex.quote(asked.path)} -m pip"
        for node, own in versions.items():
            if own == usual:
                yield ok(node, own if own == NOT_INSTALLED else f"{asked.name}: {own}")
                continue
            pinned = shlex.quote(f"trainmark=={usual}")
            mends = "uninstall --yes trainmark" if usual == NOT_INSTALLED else f"install {pinned}"
            what = f"Trainmark in {asked.name} is {own}, on the others {usual}"
            yield bad(node, f"{asked.name}: {own}", what, f"on {node}: `{pip} {mends}`")


TRAINMARK = NodeCheck("Trainmark", CheckArea.SOFTWARE, find_package, essential=True)


Sums = tuple[str | None, str | None]


def find_dataset(examined: Examination) -> Iterator[NodeFinding]:
    datasets = {name: facts.dataset for name, facts in examined.facts() if facts.dataset}
    usual = most_common({name: _checksums(own) for name, own in datasets.items() if own.files})
    source = next((name for name, own in datasets.items() if own.files and _checksums(own) == usual), None)
    for node, own in datasets.items():
        path = shlex.quote(own.path)
        copy = f"from {source}: `rsync -a --delete {path}/ {shlex.quote(node)}:{path}/`"
        fix = copy if source and source != node else f"put it there, or name its place: --dataset, not {path}"
        if not own.exists:
            yield bad(node, "missing", f"there is nothing at {own.path}", fix)
        elif own.trouble:
            yield bad(node, "not readable", own.trouble, f"on {node}: `ls -lR {path} | head`; let it be read")
        elif not own.files:
            yield bad(node, "empty", f"no file lies in {own.path}", fix)
        elif _checksums(own) != usual:
            yield bad(
                node,
                _dataset_value(own),
                f"{own.path} is not what the others have: {_dataset_value(own)}",
                fix,
            )
        else:
            yield ok(node, _dataset_value(own))


def _checksums(own: NodeDataset) -> Sums:
    return own.names, own.contents


def _dataset_value(own: NodeDataset) -> str:
    checksum = own.contents or own.names or ""
    return f"{own.files:,} file{'s' * (own.files != 1)}, {format_bytes(own.bytes)}, {checksum[:8]}"


DATASET = NodeCheck("dataset", CheckArea.DATA, find_dataset)
