"""What must be known before the first trial: suite, machines, what can run on them, and for how long."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmark.base.errors import UserError, nearest
from trainmark.base.secrets import is_secret
from trainmark.launch.options import LaunchOptions
from trainmark.logs.trials.auto import reader_names
from trainmark.machine.frameworks.installed import install_hint, python_of
from trainmark.runner.command import RankInterpreter, interpreter, line_of, workload_arguments
from trainmark.runner.inventory import Answers, Question, ask, this_machine
from trainmark.store.run import all_runs
from trainmark.suite import load
from trainmark.suite.model import ONE_DEVICE, Case, Command, Suite, SuiteError, Topology
from trainmark.suite.plan import Plan, Resources, SkippedCase, fastest_choices, plan
from trainmark.workloads.registry import Family

if TYPE_CHECKING:
    from trainmark.runner.cluster import Cluster


@dataclass(frozen=True)
class Preflight:
    """The plan without what was refused, and what each framework says of itself by case."""

    plan: Plan
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)


AskFramework = Callable[[RankInterpreter, Family, str, Sequence[Question]], Answers]


def preflight(plan: Plan, ask: AskFramework = ask) -> Preflight:
    """One process per interpreter and framework answers for all of its cases, in every way they allow."""
    groups: dict[tuple[RankInterpreter, str, str], list[Case]] = {}
    for case in plan.cases:
        if not isinstance(case.workload, Command):
            key = (interpreter(case), case.workload, str(case.framework))
            groups.setdefault(key, []).append(case)
    facts: dict[str, dict[str, Any]] = {}
    settled: dict[Case, Case | SkippedCase] = {}
    for (python, _workload, framework), cases in groups.items():
        asked = [fastest_choices(case) for case in cases]
        known, reasons = _ask_framework(
            ask, python, cases[0].family, framework, [choice for each in asked for choice in each]
        )
        answers = iter(reasons)
        for case, each in zip(cases, asked, strict=True):
            chosen = settled[case] = _settle(case, each, [next(answers) for _ in each])
            facts[(chosen.case if isinstance(chosen, SkippedCase) else chosen).slug] = known
    outcomes = [settled.get(case, case) for case in plan.cases]
    by_slug: dict[str, Case] = {}
    for outcome in outcomes:
        if isinstance(outcome, Case):
            # What was left open may turn out to be what another case names.
            by_slug.setdefault(outcome.slug, outcome)
    skips = tuple(outcome for outcome in outcomes if isinstance(outcome, SkippedCase))
    return Preflight(replace(plan, cases=tuple(by_slug.values()), skipped=(*plan.skipped, *skips)), facts)


def _settle(case: Case, asked: Sequence[Case], refusals: Sequence[str | None]) -> Case | SkippedCase:
    """The first choice that was not refused, or why the plainest were."""
    reasons: dict[str, None] = {}
    for choice, refusal in zip(asked, refusals, strict=True):
        if refusal is None:
            return choice
        if (choice.compile, choice.cuda_graph) == (asked[-1].compile, asked[-1].cuda_graph):
            reasons[refusal] = None
    return SkippedCase(case, " ".join(reasons))


def _ask_framework(
    ask: AskFramework, python: RankInterpreter, family: Family, framework: str, cases: list[Case]
) -> tuple[dict[str, Any], Sequence[str | None]]:
    questions = [Question(workload_arguments(case), case.topology.devices) for case in cases]
    answers = ask(python, family, framework, questions)
    if answers.silent is None:
        return answers.facts, answers.refusals
    return {}, [_why_not(python, framework, answers.silent)] * len(cases)


def _why_not(python: RankInterpreter, framework: str, silent: str) -> str:
    if "does not start" in silent:
        return silent
    if python.python == python_of(framework):
        return (
            f"{framework} does not start in its environment ({silent}); "
            f"`trainmark frameworks install {framework} --force` makes it anew"
        )
    if "ModuleNotFoundError" in silent:
        return f"{framework} is not installed for {python} ({silent}); {install_hint(framework)}"
    return f"{framework} does not start with {python}: {silent}"


START_SECONDS = 12.0
# What eager training gets of a device, within a factor of two: a CPU core, and a GPU by precision.
CORE_FLOPS = 30e9
GPU_FLOPS = {"fp32": 15e12, "tf32": 40e12, "amp": 80e12, "bf16": 80e12}
RECENT_RUNS = 5


def earlier_trial_seconds(runs: Path) -> dict[str, float]:
    """Median seconds of a trial by case, over the latest runs."""
    seen: dict[str, list[float]] = defaultdict(list)
    for run in all_runs(runs)[-RECENT_RUNS:]:
        for record in run.records():
            seen[record.spec.case].append(record.seconds)
    return {case: statistics.median(seconds) for case, seconds in seen.items()}


def trial_seconds(case: Case, known: Mapping[str, float]) -> float | None:
    """None for a program of the user's that has never run here."""
    if case.slug in known:
        return known[case.slug]
    workload = None if isinstance(case.workload, Command) else case.family.workload
    flops_of = None if workload is None else workload.hardware_flops or workload.flops
    if workload is None or flops_of is None or case.precision is None or case.batch_per_device is None:
        return None
    axes = dict(case.axes)
    samples = case.batch_per_device * workload.samples_per_item(axes) * case.rules.steps
    flops = flops_of(axes) * samples
    if case.device == "cuda":
        return START_SECONDS + flops / GPU_FLOPS[case.precision]
    return START_SECONDS + flops / (CORE_FLOPS * (case.threads or case.fair_threads or 1))


def plan_seconds(plan: Plan, known: Mapping[str, float]) -> float | None:
    """The sum over the trials that are sure to run; None where one of them cannot be told."""
    each = [trial_seconds(trial.case, known) for trial in plan.certain()]
    estimates = [seconds for seconds in each if seconds is not None]
    return sum(estimates) if len(estimates) == len(each) else None


@dataclass(frozen=True)
class Prepared:
    """`device` names the machines' in results, `gpus` count this one's as its driver does.

    `facts` are by case, `cluster` is None where the ranks run on this machine.
    """

    suite: Suite
    plan: Plan
    machine: Resources
    device: str
    gpus: tuple[int, ...]
    facts: Mapping[str, Mapping[str, Any]]
    cluster: Cluster | None = None

    def close(self) -> None:
        """Gives back the nodes that a scheduler allotted."""
        if self.cluster is not None:
            self.cluster.close()


def prepare(
    name: str,
    overrides: Sequence[str | load.Override] = (),
    choice: LaunchOptions = LaunchOptions(),  # noqa: B008
) -> Prepared:
    return _prepared(lambda here: load.load(name, overrides, here), choice)


def prepare_text(
    text: str,
    name: str,
    folder: str | None,
    overrides: Sequence[str | load.Override] = (),
    choice: LaunchOptions = LaunchOptions(),  # noqa: B008
) -> Prepared:
    """Prepare the suite of a program on the command line, or a run's own, to go on with it."""
    return _prepared(lambda here: load.parse(text, name, overrides, here, folder), choice)


def _prepared(suite_for: Callable[[Topology], Suite], choice: LaunchOptions) -> Prepared:
    if choice.is_local:
        here = this_machine()
        suite = _checked(suite_for(here.machine.whole))
        checked = preflight(plan(suite, here.machine))
        return Prepared(suite, checked.plan, here.machine, here.device, here.gpus, checked.facts)
    return _prepared_on_nodes(suite_for, choice)


def _prepared_on_nodes(suite_for: Callable[[Topology], Suite], choice: LaunchOptions) -> Prepared:
    from trainmark.runner.cluster import AskFrameworkOnNodes, examined_cluster

    asked = _checked(suite_for(ONE_DEVICE))
    most = max((case.topology.nodes for case in asked.cases), default=1)
    cluster = examined_cluster(choice.for_nodes(most), pythons(asked.cases))
    try:
        suite = _checked(suite_for(cluster.machine.whole))
        checked = preflight(plan(suite, cluster.machine), AskFrameworkOnNodes(cluster.launcher))
    except BaseException:
        cluster.close()
        raise
    return Prepared(suite, checked.plan, cluster.machine, cluster.device, (), checked.facts, cluster)


def pythons(cases: Sequence[Case]) -> list[str]:
    """The interpreters of this machine that ranks run with; one in an image is the image's matter."""
    return sorted({str(interpreter(case).python) for case in cases if case.container is None})


def _checked(suite: Suite) -> Suite:
    for case in suite.cases:
        _check_command(case)
        if case.loader and not case.dataset:
            raise SuiteError(
                f"the data '{case.data}' must come from somewhere; name its folder with --dataset "
                "(`trainmark data make` makes one)."
            )
        for name, _ in case.environment:
            if is_secret(name):
                raise UserError(
                    f"{name} looks like a secret, and a suite is kept with every run; "
                    f"take it out of the suite and give --pass-env {name}."
                )
    return suite


def _check_command(case: Case) -> None:
    if isinstance(case.workload, Command):
        if case.workload.reader not in reader_names():
            known = nearest(case.workload.reader, reader_names())
            raise SuiteError(f"there is no reader '{case.workload.reader}'{known}")
        line_of(case.workload, case)


def suite_parcel_folder(prepared: Prepared) -> Path | None:
    """What a user's own program stands in, and must come along to the nodes."""
    users_own = any(isinstance(case.workload, Command) for case in prepared.plan.cases)
    return Path(prepared.suite.folder) if users_own and prepared.suite.folder else None
