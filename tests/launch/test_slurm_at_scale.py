"""Slurm's controller is one for all: it is not asked anew for every node."""

from __future__ import annotations

import pytest

from trainmark.launch.carriers import slurm
from trainmark.launch.nodes import Node, NodeError

STATES: dict[str, str] = {}


@pytest.fixture
def asked(monkeypatch) -> list[str]:
    jobs: list[str] = []
    monkeypatch.setattr(slurm.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(slurm, "_state", lambda job: jobs.append(job) or STATES.get(job, "CANCELLED"))
    monkeypatch.setattr(slurm, "_node_states", lambda names: [])
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    return jobs


def test_whether_the_allocation_is_gone_is_asked_once_for_many_nodes(asked):
    carrier = slurm.Slurm((), 500)
    for number in range(500):
        with pytest.raises(NodeError, match="Slurm's job 7 is over"):
            carrier.reach(Node(f"n{number}"), ["true"])
    assert len(asked) < 10


def test_a_lost_node_is_judged_by_what_slurm_says_after_its_loss(asked, monkeypatch):
    carrier = slurm.Slurm((), 2)
    monkeypatch.setitem(STATES, "7", "RUNNING")
    carrier.gone()
    monkeypatch.setitem(STATES, "7", "CANCELLED")
    assert carrier.why_lost(Node("n0")) == ("n0", "Slurm's job 7 is over: CANCELLED")


def test_one_srun_has_a_task_on_each_of_its_nodes_and_outlives_one_of_them(asked):
    words = slurm.Slurm((), 3)._srun([Node(f"n{number}") for number in range(3)], ["true"])
    several = {"--ntasks=3", "--ntasks-per-node=1", "--nodelist=n0,n1,n2", "--no-kill"}
    assert several <= set(words)
