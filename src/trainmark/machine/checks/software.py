"""Interpreters, frameworks and packages, and the dataset, the same on every node."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

from trainmark.machine.examination import Examination, NodeDataset, NodeInstallation, most_common
from trainmark.machine.findings import (
    CheckArea,
    NodeFinding,
    NodeReport,
    format_bytes,
    node_check,
    reinstall_fix,
)


@node_check("interpreters", CheckArea.SOFTWARE, essential=True)
def interpreters(examined: Examination) -> Iterator[NodeFinding]:
    for asked, installations in examined.installed():
        versions = {node: installation.version for node, installation in installations.items()}
        usual = most_common(versions)
        for node, _ in examined.facts():
            own = versions.get(node)
            report = NodeReport(node, f"{asked.name}: {own or 'none'}")
            if own is None:
                mend = f"`{asked.install}`" if asked.install else f"install one as {asked.path}"
                report.bad(f"no Python answers at {asked.path} ({asked.name})", f"on {node}: {mend}")
            elif own != usual:
                what = f"{asked.name} runs with Python {own}, on the others with {usual}"
                report.bad(what, reinstall_fix(node, asked, f"with Python {usual}"))
            yield from report


FRAMEWORK = re.compile(
    r"torch|tensorflow(-cpu|-gpu)?|jax|jaxlib|mindspore(-gpu)?|paddlepaddle(-gpu)?|mxnet(-cu\d+)?|oneflow"
)

NO_FRAMEWORK = "no framework"
INSTALL = "`trainmark frameworks install pytorch`; for a program of your own, name its Python with --python"


@node_check("framework versions", CheckArea.SOFTWARE, essential=True)
def framework_of_interpreters(examined: Examination) -> Iterator[NodeFinding]:
    for asked, installations in examined.installed():
        versions = {
            node: framework_versions(installation.packages) for node, installation in installations.items()
        }
        usual = most_common(versions)
        for node, own in versions.items():
            report = NodeReport(node, own)
            if own == NO_FRAMEWORK and examined.wanted.framework:
                report.bad(f"{asked.path} has no framework, and no built-in suite can run", INSTALL)
            elif own != usual:
                what = f"{asked.name} has {own}, on the others {usual}"
                report.bad(what, reinstall_fix(node, asked, f"with {usual}"))
            yield from report


def framework_versions(packages: Mapping[str, str]) -> str:
    versions = [f"{name} {version}" for name, version in packages.items() if FRAMEWORK.fullmatch(name)]
    return ", ".join(sorted(versions)) or NO_FRAMEWORK


SHOWN_DIGITS = 8
SHOWN_PACKAGES = 5


@node_check("environment hash", CheckArea.SOFTWARE, essential=True)
def environment_hash(examined: Examination) -> Iterator[NodeFinding]:
    for asked, installations in examined.installed():
        usual = most_common({node: installation.hash for node, installation in installations.items()})
        for node, installation in installations.items():
            report = NodeReport(node, f"{asked.name}: {installation.hash[:SHOWN_DIGITS]}")
            if installation.hash != usual:
                model = next(model for model in installations.values() if model.hash == usual)
                what = f"{asked.name} is not what the others have: {differences(installation, model)}"
                report.bad(what, reinstall_fix(node, asked, "from the pins of the others"))
            yield from report


def differences(own: NodeInstallation, model: NodeInstallation) -> str:
    """`numpy 2.1.0, others 2.2.0; …`, or that only the files' contents differ."""
    differing = [f"Python {own.version}, others {model.version}"] if own.version != model.version else []
    for name in sorted({*own.packages, *model.packages}):
        here, there = own.packages.get(name, "missing"), model.packages.get(name, "missing")
        if here != there:
            differing.append(f"{name} {here}, others {there}")
    more = [f"and {len(differing) - SHOWN_PACKAGES} more"] if len(differing) > SHOWN_PACKAGES else []
    return "; ".join(differing[:SHOWN_PACKAGES] + more) or "the same versions, but not the same files"


# A run brings the code that its ranks need; an interpreter need not have it.
NOT_INSTALLED = "not installed"


@node_check("Trainmark", CheckArea.SOFTWARE, essential=True)
def trainmark(examined: Examination) -> Iterator[NodeFinding]:
    for asked, installations in examined.installed():
        versions = {
            node: installation.packages.get("trainmark", NOT_INSTALLED)
            for node, installation in installations.items()
        }
        usual = most_common(versions)
        pip = f"{shlex.quote(asked.path)} -m pip"
        for node, own in versions.items():
            is_usual = own == usual
            report = NodeReport(node, own if is_usual and own == NOT_INSTALLED else f"{asked.name}: {own}")
            if not is_usual:
                pinned = shlex.quote(f"trainmark=={usual}")
                mends = "uninstall --yes trainmark" if usual == NOT_INSTALLED else f"install {pinned}"
                what = f"Trainmark in {asked.name} is {own}, on the others {usual}"
                report.bad(what, f"on {node}: `{pip} {mends}`")
            yield from report


Sums = tuple[str | None, str | None]


@node_check("dataset", CheckArea.DATA)
def dataset(examined: Examination) -> Iterator[NodeFinding]:
    datasets = {name: facts.dataset for name, facts in examined.facts() if facts.dataset}
    usual = most_common({name: _checksums(own) for name, own in datasets.items() if own.files})
    source = next((name for name, own in datasets.items() if own.files and _checksums(own) == usual), None)
    for node, own in datasets.items():
        path = shlex.quote(own.path)
        copy = f"from {source}: `rsync -a --delete {path}/ {shlex.quote(node)}:{path}/`"
        fix = copy if source and source != node else f"put it there, or name its place: --dataset, not {path}"
        report = NodeReport(node, _dataset_value(own))
        if not own.exists:
            report.bad(f"there is nothing at {own.path}", fix, "missing")
        elif own.trouble:
            report.bad(own.trouble, f"on {node}: `ls -lR {path} | head`; let it be read", "not readable")
        elif not own.files:
            report.bad(f"no file lies in {own.path}", fix, "empty")
        elif _checksums(own) != usual:
            report.bad(f"{own.path} is not what the others have: {report.value}", fix)
        yield from report


def _checksums(own: NodeDataset) -> Sums:
    return own.names, own.contents


def _dataset_value(own: NodeDataset) -> str:
    checksum = own.contents or own.names or ""
    return f"{own.files:,} file{'s' * (own.files != 1)}, {format_bytes(own.bytes)}, {checksum[:8]}"
