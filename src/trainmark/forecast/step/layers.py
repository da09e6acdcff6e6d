"""The layers of the models that are forecast: parameters and work, counted from the architecture."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from trainmark.workloads import registry
from trainmark.workloads.declaration import Axes, Layer


def bert_base(sequence: int = 128) -> Iterator[Layer]:
    """BERT-base with its two heads of pre-training; the tied embedding comes last of all gradients."""
    hidden, inner, words = 768, 3072, 30522
    norm = 2 * hidden
    yield Layer((words + 512 + 2) * hidden + norm, 0)
    for _ in range(12):
        attention = 4 * hidden * hidden * sequence + 2 * hidden * sequence * sequence
        yield Layer(4 * (hidden * hidden + hidden) + norm, attention)
        yield Layer(2 * hidden * inner + inner + hidden + norm, 2 * hidden * inner * sequence)
    yield Layer(hidden * hidden + hidden, hidden * hidden)
    predicted = sequence * 20 // 128  # masked words of a sequence, as the original pre-training has them
    yield Layer(hidden * hidden + hidden + norm + words, (hidden + words) * hidden * predicted)
    yield Layer(2 * hidden + 2, 2 * hidden)


def even(parameters: int, layers: int = 50) -> Iterator[Layer]:
    """A model of which only the size is known."""
    for place in range(layers):
        yield Layer(parameters * (place + 1) // layers - parameters * place // layers, 1)


# Published in the ledger, and not a workload here.
PUBLISHED: dict[str, Callable[[], Iterable[Layer]]] = {"bert-base": bert_base}


def models() -> list[str]:
    """Return the names of all models whose layers are known."""
    declared = [name for name, family in registry.families().items() if family.workload.layers]
    return [*declared, *PUBLISHED]


def layers_of(model: str, axes: Axes | None = None) -> Iterable[Layer] | None:
    """Return the layers of a workload, by name or by folder, or of a published model.

    An axis that is not given is at its default.
    """
    if model in PUBLISHED:
        return PUBLISHED[model]()
    family = registry.find(model) if registry.is_path(model) else registry.families().get(model)
    if family is None or family.workload.layers is None:
        return None
    defaults = family.workload.defaults
    return family.workload.layers({name: (axes or {}).get(name, defaults[name]) for name in defaults})
