"""AI-Rank's submission tree: `submitter/system/{system_information.json, model/{code, data, log}}`.

The layout and the lines are those of AI-Rank's docs/hardware/train.md. Lines that only a training to a
target accuracy can write (`load_data`, `eval_accuracy`, `target_quality_time`) are left out of other trials.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from trainmark.measure.figure import Finish
from trainmark.measure.key import Key
from trainmark.metric import score
from trainmark.pages.export.source import (
    ExportedRun,
    Measured,
    Skipped,
    by_topology,
    median_trial,
    plain,
    safe_name,
    series,
    untaken,
)
from trainmark.pages.label import batch, facts, precision
from trainmark.pages.number import gibibytes
from trainmark.workloads import registry

_THROUGHPUT = (
    "This is a throughput measurement: nothing was trained to a target accuracy, so that the logs have no"
    " `load_data`, `eval_accuracy` and `target_quality_time` lines. `avg_ips` is samples over wall time"
    " in the steady window after warm-up. Each log is the trial with the median throughput."
)
_TRAINING = (
    "This is a training by epochs with an evaluation after each. `test_begin` is the start of the first"
    " process, and the clock never pauses. `avg_ips` counts the epochs after the first over all the time"
    " after it, evaluations included. Each log is the trial with the median time to the target, or with the"
    " median throughput where some trial missed it."
)


def write(source: ExportedRun, folder: Path) -> Sequence[Skipped]:
    # `Linux 6.18.0` or, of an older record, only the distribution's name; AI-Rank wants the first word.
    system_name = str(source.fact("host", "kernel") or source.fact("host", "system") or "system")
    system = folder / safe_name(source.submitter) / safe_name(plain(system_name).partition(" ")[0])
    system.mkdir(parents=True)
    information = json.dumps(system_information(source), indent=2) + "\n"
    (system / "system_information.json").write_text(information, encoding="utf-8")
    groups = series(source.measured)
    short = [_short_name(key) for key in groups]
    taken: set[str] = set()
    for key, trials in groups.items():
        name = _short_name(key)
        if short.count(name) > 1:
            name = safe_name(f"{name}_{precision(key)}_{batch(key)}")
        _write_model(system / untaken(name, taken), source, key, trials)
    return source.skipped


def _short_name(key: Key) -> str:
    """AI-Rank allows the model's name, alone or with the framework's."""
    model = registry.name_elsewhere(key.workload, "airank")
    return safe_name("_".join(filter(None, (model, key.framework))))


def _write_model(place: Path, source: ExportedRun, key: Key, trials: Sequence[Measured]) -> None:
    for part in ("code", "data", "log"):
        (place / part).mkdir(parents=True)
    chosen: dict[str, Measured] = {}
    for topology, same in by_topology(trials).items():
        name = f"GPUx{same[0].record.key.devices}"
        # As many devices on more nodes: AI-Rank has no name for that.
        taken = f"{name}.log" in chosen
        chosen[f"{name}-{topology}.log" if taken else f"{name}.log"] = median_trial(same)
    for name, trial in chosen.items():
        (place / "log" / name).write_text("".join(log_lines(trial)), encoding="utf-8")
    (place / "code" / "README.md").write_text(_readme(source, key, chosen, trials), encoding="utf-8")
    data = plain(key.data or "not known")
    (place / "data" / "README.md").write_text(f"# Data\n\nThe training data: {data}.\n", encoding="utf-8")


def log_lines(trial: Measured) -> Iterator[str]:
    steps, figure = trial.steps, trial.figure
    unit = plain(figure.unit)
    if figure.finish is not None:
        yield from _training_lines(figure.finish, steps.first_start, unit)
        return
    yield f"- AI-Rank-log {steps.start:.3f} test_begin\n"
    yield f"- AI-Rank-log {steps.end:.3f} test_finish\n"
    yield f"- AI-Rank-log {steps.end:.3f} total_use_time:{steps.end - steps.start:.3f}sec\n"
    yield f"- AI-Rank-log {steps.end:.3f} avg_ips:{figure.throughput:.3f}{unit}/sec\n"


def _training_lines(finish: Finish, start: float, unit: str) -> Iterator[str]:
    """The test begins with the process; `avg_ips` leaves the first epoch out, and no evaluation."""
    begin, end = start - (finish.startup_seconds or 0.0), start + finish.seconds
    entries = [(begin, "test_begin"), (start, "load_data")]
    for evaluation in finish.evaluations:
        at = start + evaluation.end
        value = score(evaluation.scores, finish.metric)
        if value is not None:
            entries.append((at, f"eval_accuracy:{value:.6f}, total_epoch_cnt:{evaluation.epoch + 1}"))
        if evaluation is finish.crossing:
            entries.append((at, f"target_quality_time:{at - begin:.3f}sec"))
    entries += [(end, "test_finish"), (end, f"total_use_time:{end - begin:.3f}sec")]
    if (rate := finish.airank_rate or finish.whole_rate) is not None:
        entries.append((end, f"avg_ips:{rate:.3f}{unit}/sec"))
    yield from (f"- AI-Rank-log {at:.3f} {text}\n" for at, text in entries)


def system_information(source: ExportedRun) -> dict[str, Any]:
    """The fields that AI-Rank demands; null where the environment does not tell."""
    gpus = source.fact("devices", "gpus") or []
    gpu = gpus[0] if gpus else {}
    keys = [trial.record.key for trial in source.measured]
    return {
        "accelerator_memory_capacity": _capacity(gpu.get("memory_bytes")),
        "accelerator_name": gpu.get("name"),
        "accelerators_per_node": max((key.devices_per_node for key in keys), default=None),
        "host_memory_capacity": _capacity(source.fact("host", "memory_bytes")),
        "host_processor_core_count": source.fact("host", "cpu", "cores"),
        "host_processor_name": source.fact("host", "cpu", "model"),
        "host_processors_per_node": source.fact("host", "cpu", "sockets"),
        "host_storage_capacity": None,
        "host_storage_type": None,
        "number_of_nodes": max((key.nodes for key in keys), default=None),
        "operating_system": source.fact("host", "system"),
        "software_stack": _software(source),
        "submitter": source.submitter,
        "hardware_name": source.fact("host", "product"),
        "hardware_type": None,
    }


def _capacity(size: float | None) -> str | None:
    return None if size is None else f"{gibibytes(size)} GiB"


def _software(source: ExportedRun) -> str:
    parts = {
        "driver": source.fact("devices", "driver"),
        "CUDA": source.fact("devices", "cuda_driver"),
        "Python": source.fact("software", "python"),
        **(source.fact("software", "frameworks") or {}),
    }
    return ", ".join(f"{name} {version}" for name, version in parts.items() if version)


def _readme(source: ExportedRun, key: Key, chosen: dict[str, Measured], trials: Sequence[Measured]) -> str:
    info = source.info
    lines = [
        f"# {plain(key.workload)}",
        "",
        f"Measured by Trainmark {plain(info.version)} in the run `{plain(info.name)}`: {plain(facts(key))}.",
        "",
        _TRAINING if trials[0].figure.finish else _THROUGHPUT,
        "",
        "## To repeat it",
        "",
        f"    {plain(info.command)}",
        "",
        *(f"- {name}: `{plain(trial.record.spec.command)}`" for name, trial in chosen.items()),
        "",
        "## All trials",
        "",
        *(
            f"- {trial.name}: {trial.figure.throughput:.6g} {plain(trial.figure.unit)}/s over "
            f"{trial.figure.window.steps} steps after {trial.figure.window.first} of warm-up"
            for trial in trials
        ),
    ]
    return "\n".join(lines) + "\n"
