"""The recipes that a training can go by, for whoever must choose one."""

from __future__ import annotations

from dataclasses import dataclass

from trainmark.workloads.resnet50.shared import recipe


@dataclass(frozen=True)
class Choice:
    """`batch` is the global one that its rate is given at."""

    name: str
    about: str
    source: str
    optimizer: str
    epochs: int
    batch: int
    target: dict[str, float]


def recipes() -> list[Choice]:
    return [_choice(recipe.read(name)) for name in recipe.names()]


def _choice(found: recipe.Recipe) -> Choice:
    return Choice(
        name=found.name,
        about=found.about,
        source=found.source,
        optimizer=found.optimizer,
        epochs=found.epochs,
        batch=found.rate_batch,
        target=dict(found.target or {}),
    )
