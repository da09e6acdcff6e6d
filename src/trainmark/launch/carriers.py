"""The launchers by name: a new one is a file of this room with a carrier in it, and a line here."""

from __future__ import annotations

import importlib

from trainmark.errors import UserError, nearest
from trainmark.launch.carrier import Carrier
from trainmark.launch.choice import Choice
from trainmark.launch.cluster import ClusterLauncher

CARRIERS = {
    "ssh": "trainmark.launch.ssh:Ssh",
    "slurm": "trainmark.launch.slurm:Slurm",
    "mpi": "trainmark.launch.mpi:Mpi",
    "ray": "trainmark.launch.ray:Ray",
}
LOCAL = "local"


def names() -> list[str]:
    return [LOCAL, *CARRIERS]


def launcher_of(choice: Choice) -> ClusterLauncher:
    launcher = ClusterLauncher(carrier_of(choice), choice.interface, choice.passed, choice.port)
    launcher.left_out.update(choice.excluded)
    if not launcher.nodes:
        launcher.close()
        raise UserError(f"no node is left without {', '.join(choice.excluded)}; exclude fewer.")
    return launcher


def carrier_of(choice: Choice) -> Carrier:
    if choice.launcher not in CARRIERS:
        raise UserError(f"there is no launcher '{choice.launcher}'{nearest(choice.launcher, names())}")
    module, _, name = CARRIERS[choice.launcher].partition(":")
    carrier: Carrier = getattr(importlib.import_module(module), name).of(choice)
    return carrier
