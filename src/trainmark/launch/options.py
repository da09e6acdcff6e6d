"""Launch options: which launcher, which hosts, and what each launcher needs to know.

A launcher is a file in `carriers/`, with its `CARRIER` and the `OPTIONS` it declares.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmark.base.errors import UserError, nearest
from trainmark.launch.carrier import Carrier, CarrierOption
from trainmark.launch.nodes import Node

if TYPE_CHECKING:
    from trainmark.launch.launcher import ClusterLauncher


@dataclass(frozen=True)
class LaunchOptions:
    """`options` go to ssh, salloc or mpirun as they are; `own` are those that one carrier declares.

    In a run's folder `own` stand among the others, each under its name.
    """

    launcher: str = "local"
    nodes: tuple[Node, ...] = ()
    count: int | None = None
    interface: str | None = None
    passed: tuple[str, ...] = ()
    port: int | None = None
    options: tuple[str, ...] = ()
    own: tuple[tuple[str, str], ...] = ()
    excluded: tuple[str, ...] = ()
    exclude_bad_nodes: bool = False

    @property
    def is_local(self) -> bool:
        return self.launcher == "local"

    def changed_by(self, other: LaunchOptions) -> LaunchOptions:
        """Return the options to resume with: these, with what was given anew."""
        if not other.is_local:
            return other
        given = {
            field.name: getattr(other, field.name)
            for field in fields(other)
            if getattr(other, field.name) != getattr(LaunchOptions(), field.name)
        }
        own = tuple({**dict(self.own), **dict(other.own)}.items())
        return replace(self, exclude_bad_nodes=other.exclude_bad_nodes, **{**given, "own": own})

    def carrier_option(self, name: str) -> str | None:
        """Return the value of an option that a carrier declares; None where it is not given."""
        return dict(self.own).get(name)

    def for_nodes(self, count: int) -> LaunchOptions:
        """Return the options with a number of nodes to ask a scheduler for, where none was given."""
        return self if self.count is not None else replace(self, count=count)


def encode_options(choice: LaunchOptions) -> dict[str, Any]:
    plain = asdict(choice)
    return {**plain, **dict(plain.pop("own"))}


def decode_options(plain: Mapping[str, Any], carrier_options: Collection[str]) -> LaunchOptions:
    """Return the options that a run's folder holds, with those that some carrier declares."""
    try:
        values = _with_tuples(plain)
        values["nodes"] = tuple(Node(**_with_tuples(node)) for node in plain.get("nodes", ()))
        own = {name: values.pop(name) for name in carrier_options if name in values}
        values["own"] = tuple((name, str(value)) for name, value in own.items() if value is not None)
        return LaunchOptions(**values)
    except (TypeError, AttributeError) as error:
        raise UserError(f"where the run was made is not written as this version does: {error}.") from error


def _with_tuples(plain: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in plain.items()}


LOCAL = "local"
CARRIERS = Path(__file__).with_name("carriers")
# What carriers share, and what another Python runs for one of them.
NOT_CARRIERS = ("__init__", "ray_bridge")


@cache
def carrier_modules() -> dict[str, Any]:
    """Return the module of each carrier, by the launcher's name."""
    names = sorted(path.stem for path in CARRIERS.glob("*.py") if path.stem not in NOT_CARRIERS)
    return {name: importlib.import_module(f"{__package__}.carriers.{name}") for name in names}


def names() -> list[str]:
    return [LOCAL, *carrier_modules()]


def carrier_options() -> list[CarrierOption]:
    """Return the options that only one launcher understands, of all of them."""
    return [option for module in carrier_modules().values() for option in getattr(module, "OPTIONS", ())]


def stored_options(plain: Mapping[str, Any]) -> LaunchOptions:
    """Return the options that a run's folder holds."""
    return decode_options(plain, [option.name for option in carrier_options()])


def launcher_of(choice: LaunchOptions) -> ClusterLauncher:
    from trainmark.launch.launcher import ClusterLauncher  # a command's --help needs only the options

    launcher = ClusterLauncher(carrier_of(choice), choice.interface, choice.passed, choice.port)
    launcher.left_out.update(choice.excluded)
    if not launcher.nodes:
        launcher.close()
        raise UserError(f"no node is left without {', '.join(choice.excluded)}; exclude fewer.")
    return launcher


def carrier_of(choice: LaunchOptions) -> Carrier:
    if choice.launcher not in carrier_modules():
        raise UserError(f"there is no launcher '{choice.launcher}'{nearest(choice.launcher, names())}")
    carrier: Carrier = carrier_modules()[choice.launcher].CARRIER.of(choice)
    return carrier
