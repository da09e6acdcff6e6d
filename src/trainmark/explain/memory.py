"""What held the memory at a step's peak, and what would free some of it, from what the program observed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainmark.explain.explanation import Memory, MemoryPart
from trainmark.view.message import Message, _, joined

LEAST_SHARE = 0.02  # of the peak: below it nothing is suggested
MOST_MODULES = 20
GIB, MIB, KIB = 2**30, 2**20, 2**10
COMPILED, OUTSIDE = _("compiled graph"), _("outside of modules")  # as the program tells them
OWN_NAMES: dict[str, str] = {COMPILED: COMPILED, OUTSIDE: OUTSIDE}
CROSS_ENTROPY = "cross_entropy"


@dataclass(frozen=True)
class Saving:
    """One change and the bytes of the peak that it frees."""

    kind: str
    bytes: int
    sentence: str
    part: str  # the kind of the part that shrinks


def refusal(observed: Mapping[str, Any] | None) -> str | None:
    """Return why there is no memory to show, None where there is."""
    if observed is None:
        return _("The program did not look at its memory.")
    if "error" in observed:
        return str(observed["error"])
    return None if _count(observed, "peak") else _("The program did not tell the peak of its memory.")


def memory(observed: Mapping[str, Any] | None, world_size: int = 1, sharded: bool = False) -> Memory | None:
    """Return the parts of the peak; all but fragmentation add up to it, exactly, and none is negative.

    `sharded` says that weights and optimizer are spread over the ranks already.
    """
    if observed is None or refusal(observed) is not None:
        return None
    peak, reserved = _count(observed, "peak"), _count(observed, "reserved")
    possible = savings(observed, world_size, sharded)
    parts = list(_parts(observed, possible))
    parts = _within(parts, peak)
    rest = peak - sum(part.bytes for part in parts)
    if rest:
        parts.append(MemoryPart("other", rest, _rest_name(observed)))
    if reserved > peak:
        parts.append(
            MemoryPart("fragmentation", reserved - peak, _("reserved by the allocator, in no tensor"))
        )
    return Memory(peak, reserved or None, tuple(parts), tuple(saving.sentence for saving in possible))


def _parts(observed: Mapping[str, Any], possible: list[Saving]) -> Iterator[MemoryPart]:
    freed: dict[str, str] = {}
    for saving in possible:
        freed.setdefault(
            saving.part, _("{kind} frees {freed}", kind=saving.kind, freed=in_bytes(saving.bytes))
        )
    singles = (
        ("weights", "parameters", None),
        ("buffers", "buffers", None),
        ("gradients", "gradients", None),
        ("gradients", "buckets", _("buckets of DDP, beside the gradients")),
        ("optimizer", "optimizer", None),
        ("weights", "weight_casts", _("half-precision copies by autocast")),
        ("inputs", "batch_bytes", None),
    )
    for kind, key, about in singles:
        if size := _count(observed, key):
            yield MemoryPart(kind, size, about, freed.pop(kind, None))
    for index, (name, size) in enumerate(modules(observed).items()):
        yield MemoryPart("activations", size, name, freed.get("activations") if index == 0 else None)
    if size := _count(observed, "graph_pools"):
        name = _("of CUDA graphs, with their temporaries: by module they are not known at a replay")
        yield MemoryPart("activations", size, name)


def modules(observed: Mapping[str, Any]) -> dict[str, int]:
    """Return the activations by module, those of the lists of blocks block by block, the largest first."""
    patterns = {str(row.get("pattern")) for row in _rows(observed, "blocks")}
    sizes: dict[str, int] = {}
    for row in _rows(observed, "activations"):
        path, kind = str(row.get("module", "")), str(row.get("type", ""))
        kind, path = OWN_NAMES.get(kind, kind), OWN_NAMES.get(path, path)
        name = _block_of(path, patterns) or path or kind
        if kind in (COMPILED, CROSS_ENTROPY):
            name = kind if path in ("", OUTSIDE) else _("{kind} of {module}", kind=kind, module=path)
        sizes[name] = sizes.get(name, 0) + _count(row, "bytes")
    ordered = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
    shown = dict(ordered[:MOST_MODULES])
    if rest := sum(size for _name, size in ordered[MOST_MODULES:]):
        others = _("other modules")
        shown[others] = shown.get(others, 0) + rest
    return {name: size for name, size in shown.items() if size}


def _block_of(path: str, patterns: set[str]) -> str | None:
    """Return the outermost block of a list that a module lies in: `blocks.3` of `blocks.3.up`."""
    parts = path.split(".")
    for length in range(1, len(parts) + 1):
        if ".".join("*" if part.isdigit() else part for part in parts[:length]) in patterns:
            return ".".join(parts[:length])
    return None


def _within(parts: list[MemoryPart], peak: int) -> list[MemoryPart]:
    """Return the parts as far as the peak holds them."""
    left, fitting = peak, []
    for part in parts:
        size = min(part.bytes, left)
        left -= size
        if size:
            fitting.append(part if size == part.bytes else MemoryPart(part.kind, size, part.name, part.freed))
    return fitting


def _rest_name(observed: Mapping[str, Any]) -> str:
    if observed.get("device") == "cpu":
        return _("interpreter, libraries, temporaries and the profiler")
    if not _count(observed, "saved_tensors"):
        return _("activations, workspaces and temporaries: no tensor was seen being saved for backward")
    return _("workspaces and temporaries")


def savings(observed: Mapping[str, Any], world_size: int = 1, sharded: bool = False) -> list[Saving]:
    """Return the changes that free at least 2 % of the peak, the largest first."""
    peak = _count(observed, "peak")
    possible = [
        *_checkpointing(observed),
        *_half_batch(observed),
        *_smaller_optimizer(observed),
        *_fused_cross_entropy(observed),
        *([] if sharded else _sharding(observed, world_size)),
    ]
    worth = [saving for saving in possible if saving.bytes >= max(1, LEAST_SHARE * peak)]
    return sorted(worth, key=lambda saving: (-saving.bytes, saving.kind))


def activations(observed: Mapping[str, Any]) -> int:
    """Return the bytes saved for backward at the peak, whatever saved them."""
    return sum(_count(row, "bytes") for row in _rows(observed, "activations"))


def checkpointed(block: Mapping[str, Any]) -> int:
    """Return by how much saved tensors fall where every block of a list keeps its input alone."""
    return max(0, _count(block, "bytes") - _count(block, "inputs"))


def _checkpointing(observed: Mapping[str, Any]) -> Iterator[Saving]:
    """Free a list's activations but for the inputs, and but for one block at a time computed again."""
    blocks = _rows(observed, "blocks")
    if not blocks:
        return
    best = max(blocks, key=lambda block: checkpointed(block) - _count(block, "largest"))
    freed, then = _above_update(observed, checkpointed(best) - _count(best, "largest"))
    saved, inputs, largest = (in_bytes(_count(best, name)) for name in ("bytes", "inputs", "largest"))
    sentence = _(
        "Activation checkpointing of the {count} modules {pattern} ({type}) frees {freed}: they save {saved},"
        " of which {inputs} of inputs and one module's {largest} remain; their forward pass is computed"
        " twice.",
        count=_count(best, "count"),
        pattern=best.get("pattern"),
        type=best.get("type"),
        freed=in_bytes(freed),
        saved=saved,
        inputs=inputs,
        largest=largest,
    )
    yield Saving(_("checkpointing"), freed, joined([sentence, *then], " "), "activations")


def _above_update(observed: Mapping[str, Any], freed: int) -> tuple[int, list[Message]]:
    """Return what of it the peak can fall, as the update has a peak of its own, and a sentence on that."""
    update = _count(observed, "update_peak")
    if update and freed > _count(observed, "peak") - update:
        then = _("Then the optimizer's update is the peak.")
        return max(0, _count(observed, "peak") - update), [then]
    return freed, []


def _half_batch(observed: Mapping[str, Any]) -> Iterator[Saving]:
    known = activations(observed) + _count(observed, "graph_pools") + _count(observed, "batch_bytes")
    freed, then = _above_update(observed, known // 2)
    sentence = _(
        "Half the batch frees {freed}: half of the activations, {known}.",
        freed=in_bytes(freed),
        known=in_bytes(known),
    )
    yield Saving(_("half the batch"), freed, joined([sentence, *then], " "), "inputs")


def _smaller_optimizer(observed: Mapping[str, Any]) -> Iterator[Saving]:
    state, weights = _count(observed, "optimizer"), _count(observed, "parameters")
    moments = min(state, 2 * weights)
    if moments < 1.9 * weights or not weights:
        return  # no Adam: at most one buffer a weight
    freed = moments // 2
    yield Saving(
        _("a smaller optimizer state"),
        freed,
        _(
            "Moments in half of their precision (8 bits: three quarters), or one moment as SGD has it, free"
            " {freed} of the optimizer's {state}.",
            freed=in_bytes(freed),
            state=in_bytes(state),
        ),
        "optimizer",
    )


def _fused_cross_entropy(observed: Mapping[str, Any]) -> Iterator[Saving]:
    rows = _rows(observed, "activations")
    freed = sum(_count(row, "bytes") for row in rows if row.get("type") == CROSS_ENTROPY)
    freed, then = _above_update(observed, freed)
    sentence = _(
        "A head with a fused cross entropy, which computes the logits in pieces, frees at least {freed} that"
        " the loss saves.",
        freed=in_bytes(freed),
    )
    yield Saving(_("a fused head and loss"), freed, joined([sentence, *then], " "), "loss")


def _sharding(observed: Mapping[str, Any], world_size: int) -> Iterator[Saving]:
    """Free all but a rank's part of weights, optimizer and of the gradients that are there at the peak."""
    if world_size == 1 and observed.get("device") == "cpu":
        return  # two ranks of one machine hold as much between them
    ranks = max(world_size, 2)
    state = sum(_count(observed, key) for key in ("parameters", "gradients", "buckets", "optimizer"))
    freed = state - -(-state // ranks)
    yield Saving(
        _("sharding"),
        freed,
        _(
            "FSDP over {ranks} ranks frees {freed} on each, less the layer that is gathered: weights,"
            " gradients and optimizer, {state}, are spread over them.",
            ranks=ranks,
            freed=in_bytes(freed),
            state=in_bytes(state),
        ),
        "weights",
    )


def in_bytes(size: int) -> str:
    for name, unit in (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if size >= unit:
            return f"{size / unit:,.2f} {name}"
    return f"{size} bytes"


def _count(row: Mapping[str, Any], key: str) -> int:
    """Return a number of bytes; what a program wrote there that is none counts as 0."""
    value = row.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _rows(observed: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    rows = observed.get(key)
    return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []
