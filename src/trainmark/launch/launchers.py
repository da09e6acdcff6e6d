"""The launchers by name: each is a file in `carriers/`, with its `CARRIER` and the `OPTIONS` it declares."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmark.errors import UserError, nearest
from trainmark.launch.carriers.carrier import Carrier, CarrierOption
from trainmark.launch.options import LaunchOptions, from_dict

if TYPE_CHECKING:
    from trainmark.launch.cluster import ClusterLauncher

LOCAL = "local"
CARRIERS = Path(__file__).with_name("carriers")
# What carriers share, and what another Python runs for one of them.
NOT_CARRIERS = ("__init__", "carrier", "ray_bridge")


@cache
def modules() -> dict[str, Any]:
    """Return the module of each carrier, by the launcher's name."""
    names = sorted(path.stem for path in CARRIERS.glob("*.py") if path.stem not in NOT_CARRIERS)
    return {name: importlib.import_module(f"{__package__}.carriers.{name}") for name in names}


def names() -> list[str]:
    return [LOCAL, *modules()]


def carrier_options() -> list[CarrierOption]:
    """Return the options that only one launcher understands, of all of them."""
    return [option for module in modules().values() for option in getattr(module, "OPTIONS", ())]


def stored_options(plain: Mapping[str, Any]) -> LaunchOptions:
    """Return the options that a run's folder holds."""
    return from_dict(plain, [option.name for option in carrier_options()])


def launcher_of(choice: LaunchOptions) -> ClusterLauncher:
    from trainmark.launch.cluster import ClusterLauncher  # a command's --help needs only the options

    launcher = ClusterLauncher(carrier_of(choice), choice.interface, choice.passed, choice.port)
    launcher.left_out.update(choice.excluded)
    if not launcher.nodes:
        launcher.close()
        raise UserError(f"no node is left without {', '.join(choice.excluded)}; exclude fewer.")
    return launcher


def carrier_of(choice: LaunchOptions) -> Carrier:
    if choice.launcher not in modules():
        raise UserError(f"there is no launcher '{choice.launcher}'{nearest(choice.launcher, names())}")
    carrier: Carrier = modules()[choice.launcher].CARRIER.of(choice)
    return carrier
