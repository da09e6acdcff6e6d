"""Scripts for sites where nothing may be started from outside: one for each node, collected afterwards."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from trainmark.base.errors import UserError
from trainmark.launch.carriers.slurm import sbatch_lines
from trainmark.launch.job import Job, Placement, RankSlot
from trainmark.launch.launcher import LocalLauncher
from trainmark.launch.nodes import Node
from trainmark.launch.options import LaunchOptions, encode_options, stored_options
from trainmark.launch.outcome import EndCause, JobEnd
from trainmark.launch.session import make_folders
from trainmark.runner.command import job_of, keep_code
from trainmark.runner.inventory import this_machine
from trainmark.runner.prepare import Prepared
from trainmark.runner.progress import NoDisplay
from trainmark.runner.run import context_of, families_of
from trainmark.runner.trial import record_of
from trainmark.store.run import RunFolder
from trainmark.store.trial import TrialRecord
from trainmark.suite import load
from trainmark.suite.model import Suite, Topology
from trainmark.suite.plan import PlannedTrial, fastest_choices, plan

FIRST_PORT = 29500
PORTS_PER_TRIAL = 1 + 64
HIGHEST_PORT = 60000


def sbatch(arguments: Sequence[str], nodes: int, options: Sequence[str]) -> str:
    """One job that runs the suite inside its own allocation."""
    command = shlex.join([sys.executable, "-m", "trainmark", "run", *arguments, "--launcher", "slurm"])
    return "\n".join(["#!/bin/sh", *sbatch_lines(nodes, options), f"exec {command}", ""])


def write_node_scripts(run: RunFolder, prepared: Prepared, choice: LaunchOptions) -> dict[str, Path]:
    """`scripts/NODE.sh` in the run's folder, one for each node; they find each other by address and port."""
    nodes = choice.nodes
    keep_code(run.code, families_of(prepared.plan))
    run.keep_cluster(encode_options(choice), {})
    lines: dict[str, list[str]] = {node.name: ["#!/bin/sh", "cd /", ""] for node in nodes}
    for number, trial in enumerate(prepared.plan.certain()):
        job = _job(run, prepared, trial)
        make_folders(job.folder)
        (job.folder / "exits").mkdir()
        for node, commands in _by_node(job, nodes, choice.interface, number):
            lines[node] += [f"echo {shlex.quote(trial.id)}", *commands, "wait", ""]
    scripts = run.path / "scripts"
    scripts.mkdir()
    written = {}
    for name, text in lines.items():
        written[name] = scripts / f"{name.rpartition('@')[2]}.sh"
        written[name].write_text("\n".join(text), encoding="utf-8")
        written[name].chmod(0o755)
    return written


def prepare_unseen(suite_for: Callable[[Topology], Suite], nodes: Sequence[Node]) -> Prepared:
    """For nodes that cannot be asked: taken to be as this machine, with the slots they were given."""
    here = this_machine()
    slots = min((node.slots for node in nodes if node.slots), default=here.machine.devices)
    machine = replace(here.machine, devices=slots, nodes=len(nodes), cores=max(here.machine.cores, slots))
    suite = suite_for(machine.whole)
    planned = plan(suite, machine)
    unasked = replace(planned, cases=tuple(fastest_choices(case)[0] for case in planned.cases))
    return Prepared(suite, unasked, machine, here.device, (), {})


def prepare_collected(run: RunFolder) -> Prepared:
    """The plan as it was when the scripts were written."""
    if run.cluster is None:
        raise UserError(f"{run.path} has no scripts; `trainmark launch-script` writes them.")
    nodes = stored_options(run.cluster).nodes
    folder = run.info.folder

    def suite_for(here: Topology) -> Suite:
        return load.parse(run.suite, "suite.yaml", here=here, folder=folder)

    return prepare_unseen(suite_for, nodes)


def collect(run: RunFolder, prepared: Prepared) -> list[TrialRecord]:
    """Figures of the trials that the scripts have finished; what no script has touched is left for later."""
    context = context_of(run, prepared, LocalLauncher(), NoDisplay(), lambda: False)
    records = []
    for trial in prepared.plan.certain():
        place = run.trial(trial.case.slug, trial.repeat)
        job = _job(run, prepared, trial)
        exits = {rank: _exit(job, rank) for rank in range(job.world_size)}
        if not place.part.exists() or None in exits.values():
            continue
        fallen = [rank for rank, code in exits.items() if code]
        cause = EndCause.RANK_FAILED if fallen else EndCause.FINISHED
        ending = JobEnd(cause, exits, fallen[0] if fallen else None, _seconds(job))
        record, _ = record_of(trial, job, ending, context, started=time.time() - ending.seconds)
        place.describe(record.spec, context.environment)
        place.finish(record)
        records.append(record)
    return records


def _job(run: RunFolder, prepared: Prepared, trial: PlannedTrial) -> Job:
    part = run.trial(trial.case.slug, trial.repeat).part
    seed = prepared.plan.seed + trial.repeat - 1
    return job_of(trial.case, part.absolute(), run.code.absolute(), prepared.suite.folder, seed)


def _by_node(
    job: Job, nodes: Sequence[Node], interface: str | None, number: int
) -> Iterator[tuple[str, list[str]]]:
    """Each trial has ports of its own: a node that is late with one must not meet the next."""
    first = FIRST_PORT + number * PORTS_PER_TRIAL % (HIGHEST_PORT - FIRST_PORT)
    ports = tuple(range(first + 1, first + 1 + job.ranks_per_node))
    rank_slots = [
        RankSlot(node.name, node.usual_address, node.interface or interface or "", ports, node.devices)
        for node in nodes[: job.nodes]
    ]
    placed = Placement(job, rank_slots, first, _mark(job))
    for index, rank_slot in enumerate(rank_slots):
        ranks = range(index * job.ranks_per_node, (index + 1) * job.ranks_per_node)
        yield rank_slot.node, [_started(job, rank, placed.of(rank)) for rank in ranks]


def _mark(job: Job) -> str:
    """What a person looks for where something of a trial is left over."""
    return f"{job.folder.parent.name}{job.folder.name}"


def _started(job: Job, rank: int, variables: dict[str, str]) -> str:
    known = {name: value for name, value in variables.items() if value.strip("=")}
    folder = shlex.quote(str(job.working_folder))
    log, exit_file = (shlex.quote(str(path)) for path in (job.log(rank), _exit_file(job, rank)))
    return f"(cd {folder} && env {job.placed(known).shell()} > {log} 2>&1; echo $? > {exit_file}) &"


def _exit_file(job: Job, rank: int) -> Path:
    return job.folder / "exits" / f"rank{rank}"


def _exit(job: Job, rank: int) -> int | None:
    try:
        return int(_exit_file(job, rank).read_text())
    except (OSError, ValueError):
        return None


def _seconds(job: Job) -> float:
    """From the making of the first log to the last exit, as the file system saw them."""
    logs = [job.log(rank).stat() for rank in range(job.world_size) if job.log(rank).exists()]
    ends = [_exit_file(job, rank).stat().st_mtime for rank in range(job.world_size)]
    return max(0.0, max(ends) - min((log.st_ctime for log in logs), default=max(ends)))
