"""Changes to what the device waits for: the host's launches, synchronisations, the loader."""

from __future__ import annotations

from trainmark.explain.what_if.change import (
    Overrides,
    StepPrediction,
    WhatIfChange,
    issue_seconds,
    milliseconds,
)
from trainmark.explain.what_if.situation import LAUNCH, LOADER, SYNCHRONIZATION, Situation
from trainmark.view.message import _

# Between two kernels of a CUDA graph where one waits for the other: an estimate, the record tells its errors.
GRAPH_GAP = 1e-6
# Gaps that are too short a part of a step to speak of.
LEAST_SHARE = 0.002
MOST_WORKERS = 8


def capture_graph(situation: Situation) -> StepPrediction | None:
    """Launch gaps shrink to the time that a graph needs between two kernels."""
    gaps = situation.idle_for(LAUNCH)
    if situation.device != "cuda" or situation.settings.cuda_graph or _is_small(gaps, situation):
        return None
    left = min(gaps, situation.gaps.get(LAUNCH, 0.0) * GRAPH_GAP)
    return StepPrediction(
        situation.step - gaps + left,
        _(
            "{gaps} of waiting for launches become {left}: 1 µs for each gap.",
            gaps=milliseconds(gaps),
            left=milliseconds(left),
        ),
    )


def graph_overrides(situation: Situation) -> Overrides | None:
    settings = situation.settings
    if settings.layout is not None:
        return {"cuda_graph": True}
    # Families without layouts are captured by the compiler alone, which must be on already.
    compiled = settings.framework == "pytorch" and settings.compiler == "compile"
    return {"compile": "reduce-overhead"} if compiled else None


def graph_suggestion(situation: Situation) -> Overrides | None:
    return {"compile": "reduce-overhead"} if situation.settings.framework == "pytorch" else None


def without_launch_gaps(situation: Situation) -> StepPrediction | None:
    gaps = situation.idle_for(LAUNCH)
    if situation.device != "cuda" or _is_small(gaps, situation):
        return None
    why = _("The step without {time} of waiting for the host.", time=milliseconds(gaps))
    return StepPrediction(situation.step - gaps, why)


def without_synchronisation(situation: Situation) -> StepPrediction | None:
    """A host that runs ahead again leaves no launch gaps either, where it issues a step in time."""
    waiting = situation.idle_for(SYNCHRONIZATION)
    if _is_small(waiting, situation):
        return None
    gaps = situation.idle_for(LAUNCH)
    runs_ahead = situation.device == "cuda" and situation.host is not None
    if gaps and runs_ahead and issue_seconds(situation) < situation.compute + situation.exposed:
        why = _(
            "The step without {waiting} of synchronisation and {gaps} of launch gaps that follow it: the host"
            " issues a step in less time than the device takes.",
            waiting=milliseconds(waiting),
            gaps=milliseconds(gaps),
        )
        return StepPrediction(situation.step - waiting - gaps, why)
    why = _("The step without {time} of waiting in synchronisation.", time=milliseconds(waiting))
    return StepPrediction(situation.step - waiting, why, gaps)


def free_loader(situation: Situation) -> StepPrediction | None:
    waiting = situation.idle_for(LOADER)
    if _is_small(waiting, situation):
        return None
    why = _("The step without {time} of waiting for the next batch.", time=milliseconds(waiting))
    return StepPrediction(situation.step - waiting, why, situation.idle_for(LAUNCH))


def without_python(situation: Situation) -> StepPrediction | None:
    """On a CPU nothing is launched: what no operator takes is Python's."""
    time = situation.idle_for(LAUNCH)
    if situation.device != "cpu" or _is_small(time, situation):
        return None
    why = _("The step without {time} of Python.", time=milliseconds(time))
    return StepPrediction(situation.step - time, why)


def workers_line(situation: Situation) -> str:
    """Workers that the machine has cores for; pages are pinned for a GPU to copy from."""
    cores = (situation.cores or MOST_WORKERS) // situation.settings.world_size
    on_gpu = situation.device == "cuda"
    workers = max(1, min(MOST_WORKERS, cores if on_gpu else cores - 1))
    pinned = "pin_memory=True, " if on_gpu else ""
    return f"DataLoader(..., num_workers={workers}, {pinned}persistent_workers=True)"


def loader_overrides(situation: Situation) -> Overrides | None:
    settings = situation.settings
    return {"data": "synthetic"} if settings.data not in (None, "synthetic") else None


def _is_small(seconds: float, situation: Situation) -> bool:
    return seconds < LEAST_SHARE * situation.step


CHANGES = (
    WhatIfChange(
        "graph",
        _("capture the step as a CUDA graph"),
        capture_graph,
        _("capture the step as a CUDA graph"),
        {
            "pytorch": 'model = torch.compile(model, mode="reduce-overhead")',
            "jax": "XLA_FLAGS=--xla_gpu_graph_min_graph_size=1",
        },
        graph_overrides,
        graph_suggestion,
    ),
    WhatIfChange(
        "no launch gaps",
        _("a host that is never late"),
        without_launch_gaps,
        _("fewer and larger kernels: a larger batch, or more of the step in one graph"),
    ),
    WhatIfChange(
        "no Python",
        _("no Python between operators"),
        without_python,
        _("fewer and larger operators: tensors in place of loops, or a larger batch"),
    ),
    WhatIfChange(
        "no synchronisation",
        _("no synchronisation inside the step"),
        without_synchronisation,
        _("read no value of the device inside the step: no .item(), float(), .cpu() or synchronize()"),
    ),
    WhatIfChange(
        "free loader",
        _("a loader that costs nothing"),
        free_loader,
        _("prefetch batches in other processes"),
        {
            "pytorch": workers_line,
            "tensorflow": "dataset.map(..., num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)",
        },
        loader_overrides,
    ),
)
