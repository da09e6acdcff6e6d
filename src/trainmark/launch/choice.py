"""What a user said of where to run: which launcher, which hosts, and what each launcher needs to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from trainmark.errors import UserError
from trainmark.launch.node import Node


@dataclass(frozen=True)
class Choice:
    """`options` go to ssh, salloc or mpirun as they are; `ray_…` are a cluster's address and its Python."""

    launcher: str = "local"
    nodes: tuple[Node, ...] = ()
    count: int | None = None
    interface: str | None = None
    passed: tuple[str, ...] = ()
    port: int | None = None
    options: tuple[str, ...] = ()
    ssh_config: str | None = None
    ray_address: str | None = None
    ray_python: str | None = None
    excluded: tuple[str, ...] = ()
    exclude_bad_nodes: bool = False

    @property
    def is_local(self) -> bool:
        return self.launcher == "local"

    def changed_by(self, other: Choice) -> Choice:
        """For going on with a run: the same place, with what was said anew."""
        if not other.is_local:
            return other
        said = {
            field.name: getattr(other, field.name)
            for field in fields(other)
            if getattr(other, field.name) != getattr(Choice(), field.name)
        }
        return replace(self, exclude_bad_nodes=other.exclude_bad_nodes, **said)

    def for_nodes(self, count: int) -> Choice:
        """Where a scheduler is to be asked and nobody said for how many."""
        return self if self.count is not None else replace(self, count=count)


def to_dict(choice: Choice) -> dict[str, Any]:
    return asdict(choice)


def from_dict(found: Mapping[str, Any]) -> Choice:
    """As it was kept in a run's folder."""
    try:
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in found.items()
        }
        values["nodes"] = tuple(_node(node) for node in found.get("nodes", ()))
        return Choice(**values)
    except (TypeError, AttributeError) as error:
        raise UserError(f"where the run was made is not written as this version does: {error}.") from error


def _node(found: Mapping[str, Any]) -> Node:
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in found.items()
    }
    return Node(**values)
