"""Whether a framework trains the model of the recipe: the verdict, on one rank and on two, kept here."""

from __future__ import annotations

import datetime
import hashlib
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainmark.base.errors import UserError
from trainmark.base.typed_json import encode, flattened
from trainmark.launch.job import Job
from trainmark.launch.launcher import LocalLauncher
from trainmark.launch.outcome import EndCause, Outcome
from trainmark.runner.command import (
    COMPILING,
    RankInterpreter,
    keep_code,
    own_job,
    run_job,
    usual_threads,
)
from trainmark.runner.inventory import Question, ask
from trainmark.store.files import LocalRecords
from trainmark.workloads import registry
from trainmark.workloads.declaration import Conformance, Variant
from trainmark.workloads.registry import FOLDER, Family


@dataclass(frozen=True)
class ConformanceCheck:
    """One training: on so many ranks, in one variant. `failed` says why there is nothing to compare.

    `variant` is the label of a declared one; empty is the training as it comes.
    """

    ranks: int
    variant: str
    differs: tuple[str, ...] = ()
    refused: str | None = None
    failed: str | None = None
    largest_loss_error: float | None = None
    observations: tuple[tuple[str, str], ...] = field(default=(), metadata=flattened())
    remark: str | None = None

    @property
    def passed(self) -> bool:
        return self.failed is None and self.refused is None and not self.differs


@dataclass(frozen=True)
class ConformanceVerdict:
    """`code` is the digest of what was compared; another program or reference needs another verdict."""

    framework: str
    version: str | None
    python: str
    device: str
    code: str
    checked: str
    checks: tuple[ConformanceCheck, ...]
    workload: str = registry.DEFAULT

    @property
    def conformant(self) -> bool:
        """What the framework refuses it cannot do wrong; but something must have been compared."""
        done = [check for check in self.checks if check.refused is None]
        return bool(done) and all(check.passed for check in done)

    @property
    def differs(self) -> list[str]:
        """In a sentence each, the gravest first."""
        return [
            f"{check_label(check)}: {difference}"
            for check in self.checks
            for difference in ((check.failed,) if check.failed else check.differs)
        ]

    def to_dict(self) -> dict[str, Any]:
        return {**encode(self), "conformant": self.conformant, "differs": self.differs}


def check_label(check: ConformanceCheck) -> str:
    ranks = f"{check.ranks} rank{'s' if check.ranks > 1 else ''}"
    return f"{ranks}, {check.variant}" if check.variant else ranks


SUFFIXES = (".py", ".json")
COMMON = "common"  # what the programs of all families share


def code_digest(family: Family, framework: str, folder: Path | None = None) -> str:
    """Hash the program of one framework with what it shares with others, but not their own files.

    `folder` is a copy of the family's folder in the code of a run, the folder itself where none is given.
    """
    workloads = folder.parents[family.package.count(".")] / "trainmark" / "workloads" if folder else FOLDER
    others = {*family.frameworks} - {framework}
    digest = hashlib.sha256()
    shared = [workloads / name for name in (COMMON, *family.workload.shares)]
    for root in (folder or family.folder, *shared):
        for file in sorted(root.rglob("*")):
            # An empty `__init__.py` may have been added to the copy of a folder that is no package.
            if file.suffix in SUFFIXES and file.stem not in others and (content := file.read_bytes()):
                digest.update(str(file.relative_to(root)).encode())
                digest.update(content)
    return digest.hexdigest()[:16]


VERDICTS = LocalRecords("conformance", ConformanceVerdict)


def keep(verdict: ConformanceVerdict) -> Path:
    """Write a verdict in place of an earlier one of the same subject."""
    VERDICTS.replace(verdict.framework, lambda other: _subject(other) == _subject(verdict), verdict)
    return VERDICTS.path(verdict.framework)


def find(
    workload: str, framework: str, version: str | None, python: str, device: str, code: str
) -> ConformanceVerdict | None:
    """Return the verdict on code of that digest; None where it has not been checked."""
    subject = (workload, version, python, device)
    verdicts = (verdict for verdict in VERDICTS.read(framework) if _subject(verdict) == subject)
    return next((verdict for verdict in verdicts if verdict.code == code), None)


def _subject(verdict: ConformanceVerdict) -> tuple[str, str | None, str, str]:
    return verdict.workload, verdict.version, verdict.python, verdict.device


Progress = Callable[[str], None]


def conform(
    family: Family,
    framework: str,
    python: str,
    device: str,
    progress: Progress,
    stop_asked: Callable[[], bool],
    devices: int = 2,
) -> ConformanceVerdict:
    """Check every variant that the framework offers, on as many ranks as it declares and devices allow."""
    proof = conformance_of(family)
    variants = family.workload.variants
    asked = [
        (ranks, variant)
        for variant in variants
        for ranks in sorted({*variant.ranks, *variant.ranks_if_unproven})
        if ranks <= devices
    ]
    questions = [Question(_arguments(proof, variant, device), ranks) for ranks, variant in asked]
    answers = ask(RankInterpreter(python), family, framework, questions)
    if answers.silent is not None:
        checks: list[ConformanceCheck] = [
            ConformanceCheck(1, variants[0].label, failed=f"it does not start: {answers.silent}")
        ]
    else:
        checks = []
        for (ranks, variant), refusal in zip(asked, answers.refusals, strict=True):
            if refusal is not None:
                checks.append(ConformanceCheck(ranks, variant.label, refused=refusal))
            elif ranks in variant.ranks or not any(check.ranks == ranks and check.passed for check in checks):
                progress(f"{framework}: {check_label(ConformanceCheck(ranks, variant.label))}")
                command = program(family, framework, python, variant, device)
                checks.append(checked(family, command, ranks, variant, stop_asked))
    return ConformanceVerdict(
        framework=framework,
        version=answers.facts.get("framework_version"),
        python=python,
        device=device,
        code=code_digest(family, framework),
        checked=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        checks=tuple(checks),
        workload=family.workload.name,
    )


def conformance_of(family: Family) -> Conformance:
    if family.workload.conformance is None:
        raise UserError(f"{family.workload.name} declares no conformance: there is nothing to compare with.")
    return family.workload.conformance


def variant_of(family: Family, label: str) -> Variant:
    """Return the variant with that label."""
    return next(variant for variant in family.workload.variants if variant.label == label)


def program(family: Family, framework: str, python: str, variant: Variant, device: str) -> tuple[str, ...]:
    words = _arguments(conformance_of(family), variant, device)
    return (python, "-u", "-m", family.module(framework), *words)


def _arguments(proof: Conformance, variant: Variant, device: str) -> tuple[str, ...]:
    return ("--device", device, "--precision", "fp32", *proof.arguments(), *variant.arguments)


def checked(
    family: Family,
    command: tuple[str, ...],
    ranks: int,
    variant: Variant,
    stop_asked: Callable[[], bool],
    code: Path | None = None,
) -> ConformanceCheck:
    """One training; `code` is a folder with the workloads, a copy of ours where none is given."""
    with tempfile.TemporaryDirectory(prefix="trainmark-") as made:
        folder = Path(made)
        if code is None:
            code = folder / "code"
            keep_code(code, [family])

        def job_in(attempt: Path) -> Job:
            words = (*command, "--conform", str(attempt / "shown{rank}.json"))
            # Enough for a few small steps; where others use the machine too, threads that wait are slower.
            return own_job(words, code, attempt, ranks=ranks, threads=usual_threads(1))

        job, ending, judgement = run_job(job_in, folder, LocalLauncher(), COMPILING, stop_asked)
        if ending.cause is EndCause.STOPPED:
            raise UserError("stopped; what was checked before is kept.")
        if judgement.outcome is not Outcome.OK:
            return ConformanceCheck(ranks, variant.label, failed=judgement.detail)
        try:
            compare = variant.compare or conformance_of(family).compare
            shown = [(job.folder / f"shown{rank}.json").read_bytes() for rank in range(ranks)]
            compared = compare([json.loads(text) for text in shown])
        except (OSError, ValueError, KeyError) as error:
            return ConformanceCheck(
                ranks, variant.label, failed=f"a rank left nothing that can be compared: {error}"
            )
        return ConformanceCheck(
            ranks,
            variant.label,
            differs=compared.differs,
            largest_loss_error=compared.largest_loss_error,
            observations=compared.observations,
            remark=compared.remark,
        )
