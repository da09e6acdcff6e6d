"""MLPerf Training results as a source of the ledger.

    PYTHONPATH=src python tools/ledger/mlperf.py SNAPSHOT v4.0 > …/ledger/data/mlperf-v4.0.json

SNAPSHOT is a git folder of mlcommons/training_results_v4.0. A row is one folder results/SYSTEM/BENCHMARK. The
time is that of MLPerf's rules: from run_start to run_stop, the best and the worst run dropped (four of each
for unet3d), the mean of the others; not normalised by reference convergence points, as the published scores
are. A run that did not reach the target counts among the worst. The throughput is that of our own reader, the
median of three runs, where it has no doubt of them and they agree. The date is that of the first commit.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from snapshot import Snapshot
from source_file import significant, table, written

from trainmark.base.archives import NamedStream
from trainmark.base.errors import UserError
from trainmark.logs.format_file import our_format
from trainmark.logs.read import parsed_log
from trainmark.measure.log_figure import LogFacts, logged_figure

RESULT = re.compile(r"([^/]+)/results/([^/]+)/([^/]+)/result_\d+\.txt")
RECORD = re.compile(
    rb':::MLLOG +(\{[^\n]*"(?:run_start|run_stop|global_batch_size|submission_division)"[^\n]*\})'
)
SETTINGS = re.compile(r'--(dtype|input-layout) +"(\w+)"')
# Of each benchmark: the ledger's name of what is trained, and what the reader counts.
WORKLOADS = {
    "resnet": ("resnet50", "images/s"),
    "ssd": ("retinanet", "images/s"),
    "retinanet": ("retinanet", "images/s"),
    "maskrcnn": ("mask-rcnn", "images/s"),
    "unet3d": ("unet3d", "samples/s"),
    "bert": ("bert-large", "sequences/s"),
    "rnnt": ("rnn-t", "samples/s"),
    "dlrm": ("dlrm", "samples/s"),
    "dlrm_dcnv2": ("dlrm-dcnv2", "samples/s"),
    "minigo": ("minigo", "samples/s"),
    "gpt3": ("gpt3-175b", "sequences/s"),
    "stable_diffusion": ("stable-diffusion-v2", "images/s"),
    "llama2_70b_lora": ("llama2-70b-lora", "sequences/s"),
    "llama31_405b": ("llama3.1-405b", "sequences/s"),
    "llama31_8b": ("llama3.1-8b", "sequences/s"),
    "flux1": ("flux.1-schnell", "images/s"),
    "gnn": ("r-gat", "samples/s"),
    "rgat": ("r-gat", "samples/s"),
}
# Until v1.1 the detector was another one.
FIRST_DETECTOR = {"v1.0", "v1.1"}
REQUIRED_RUNS = {
    "gpt3": 3,
    "llama31_405b": 3,
    "resnet": 5,
    "ssd": 5,
    "retinanet": 5,
    "maskrcnn": 5,
    "dlrm": 5,
}
REQUIRED_RUNS |= {"unet3d": 40}
USUAL_RUNS = 10
DROPPED = {"unet3d": 4}
LOGS_READ = 3
# These say that a figure is less certain than ours would be, not that it is wrong; three runs then tell.
HARMLESS = {"window-too-short", "loss-not-falling"}
MOST_SPREAD = 1.05
# How a system file may name a framework, the narrower name first.
FRAMEWORKS = (
    ("nemo", "nemo"),
    ("hugectr", "hugectr"),
    ("dgl", "dgl"),
    ("mxnet", "mxnet"),
    ("tensorflow", "tensorflow"),
    ("pytorch", "pytorch"),
    ("maxtext", "maxtext"),
    ("maxdiffusion", "maxdiffusion"),
    ("jax", "jax"),
    ("pax", "pax"),
    ("popart", "popart"),
    ("mindspore", "mindspore"),
    ("paddle", "paddle"),
    ("tinygrad", "tinygrad"),
    ("llmboost", "llmboost"),
    ("merlin", "hugectr"),
)
# Which of several frameworks that a system file lists runs a benchmark.
PREFERRED = {
    "resnet": ("mxnet", "tensorflow", "pytorch"),
    "unet3d": ("mxnet", "pytorch"),
    "dlrm": ("hugectr", "pytorch"),
    "dlrm_dcnv2": ("hugectr", "pytorch"),
    "minigo": ("tensorflow",),
    "gnn": ("dgl",),
    "rgat": ("dgl",),
    "gpt3": ("nemo",),
    "llama2_70b_lora": ("nemo",),
    "llama31_405b": ("nemo",),
    "llama31_8b": ("nemo",),
    "stable_diffusion": ("nemo", "pytorch"),
    "flux1": ("nemo", "pytorch"),
}
ERRATA = {
    "v1.1": (
        {
            "of": {"submitter": "Google", "workload": "bert-large", "note": "open division"},
            "says": "The open division allows another model: these took 14 and 20 hours on hundreds of "
            "nodes, where BERT-large took seconds in v1.0, so that they are no BERT-large.",
        },
    ),
    "v4.0": (
        {
            "of": {"submitter": "NVIDIA", "workload": "resnet50", "device": "NVIDIA H200-SXM5-141GB"},
            "says": "The first epoch ran at about 40,000 images/s, 37 % less than the others; a figure that "
            "holds it is lower.",
        },
        {
            "of": {"workload": "resnet50", "device": "NVIDIA H100-SXM5-80GB", "nodes": 1},
            "says": "NVIDIA's page gives 13.466 minutes for eight H100, the mean of the raw logs here is "
            "13.27: published scores are normalised by the reference convergence points, these are not.",
        },
    ),
}
COLUMNS = (
    "submitter",
    "system",
    "device",
    "nodes",
    "devices_per_node",
    "framework",
    "framework_version",
    "workload",
    "unit",
    "image_size",
    "precision",
    "layout",
    "batch_per_device",
    "throughput",
    "time_to_train_s",
    "note",
)


def main(folder: str, version: str) -> None:
    repository = Snapshot(Path(folder))
    paths = list(repository.paths())
    systems = _systems(repository, paths)
    groups: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for path in paths:
        if (match := RESULT.fullmatch(path)) and match[3] in WORKLOADS:
            groups[match[1], match[2], match[3]].append(path)
    doubts: Counter[str] = Counter()
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for (submitter, system, benchmark), logs in sorted(groups.items()):
        described = systems.get((submitter, system))
        if described is None:
            print(f"no description of {submitter}/{system}", file=sys.stderr)
        place = {"submitter": submitter, "system": system}
        row = _row(repository, version, described or {}, place, benchmark, logs, doubts)
        if row and benchmark == "resnet" and row["framework"] == "mxnet":
            row |= _mxnet_settings(repository, submitter)
        if row:
            rows[benchmark].append(row)
    source = {
        "title": f"MLPerf Training {version}",
        "page": f"https://github.com/mlcommons/training_results_{version}",
        "commit": repository.commit,
        "date": repository.first_day,
        "confidence": "computed",
    }
    tables = [table(f"{name}: SUBMITTER/results/SYSTEM/{name}", rows[name], COLUMNS) for name in sorted(rows)]
    print(written(source, tables, ERRATA.get(version, ())), end="")
    print(doubts.most_common(), file=sys.stderr)


def _systems(repository: Snapshot, paths: Sequence[str]) -> dict[tuple[str, str], dict[str, Any]]:
    """The description of each system by the submitter and the name of its file."""
    descriptions = {}
    for path in paths:
        if re.fullmatch(r"[^/]+/systems/[^/]+\.json", path):
            text = re.sub(r",(\s*[}\]])", r"\1", repository.text(path).lstrip("\ufeff"))
            try:
                descriptions[path.split("/")[0], Path(path).stem] = json.loads(text, strict=False)
            except ValueError as error:
                print(f"{path}: {error}", file=sys.stderr)
    return descriptions


def _row(
    repository: Snapshot,
    version: str,
    described: dict[str, Any],
    place: dict[str, str],
    benchmark: str,
    logs: Sequence[str],
    doubts: Counter[str],
) -> dict[str, Any] | None:
    blobs = [blob for log in sorted(logs) if (blob := repository.read(log))]
    runs = [_run(blob) for blob in blobs]
    seconds = [run["seconds"] for run in runs if run["seconds"]]
    score = _olympic([run["seconds"] for run in runs], DROPPED.get(benchmark, 1))
    workload, unit = WORKLOADS[benchmark]
    if benchmark == "ssd" and version in FIRST_DETECTOR:
        workload = "ssd-resnet34"
    device, nodes, per_node, notes = _hardware(described, place["system"])
    middle = median(seconds) if seconds else 0.0
    ended = [(run["seconds"], blob) for run, blob in zip(runs, blobs, strict=True) if run["seconds"]]
    usual = sorted(ended, key=lambda run: abs(run[0] - middle))
    rates = [rate for _, blob in usual[:LOGS_READ] if (rate := _throughput(blob, doubts, benchmark))]
    if rates and max(rates) > MOST_SPREAD * min(rates):
        doubts[f"{benchmark}: runs differ"] += 1
        rates = []
    if score is None and not rates:
        print(f"nothing of {place} {benchmark}: {len(blobs)} logs", file=sys.stderr)
        return None
    framework, release = _framework(str(described.get("framework") or ""), benchmark)
    if any(run.get("submission_division") == "open" for run in runs) or described.get("division") == "open":
        notes.append("open division")
    required = REQUIRED_RUNS.get(benchmark, USUAL_RUNS)
    if len(blobs) < required:
        notes.append(f"{len(blobs)} of {required} runs")
    batches = {run["global_batch_size"] for run in runs if run.get("global_batch_size")}
    devices = nodes * per_node if nodes and per_node else None
    batch = next(iter(batches)) if len(batches) == 1 else None
    whole = isinstance(batch, int) and devices and batch % devices == 0
    return {
        **place,
        "device": device,
        "nodes": nodes,
        "devices_per_node": per_node,
        "framework": framework,
        "framework_version": release,
        "workload": workload,
        "unit": unit,
        "image_size": 224 if benchmark == "resnet" else None,
        "batch_per_device": batch // devices if whole else None,
        "throughput": significant(median(rates)) if rates else None,
        "time_to_train_s": significant(score) if score else None,
        "note": ", ".join(notes) or None,
    }


def _run(log: bytes) -> dict[str, Any]:
    """The seconds of a run that reached the target, otherwise None; and what else its records say."""
    facts: dict[str, Any] = {}
    times: dict[str, float] = {}
    success = False
    for match in RECORD.finditer(log):
        try:
            record = json.loads(match[1])
            key, ms = record["key"], float(record["time_ms"])
        except (ValueError, KeyError, TypeError):
            continue
        if key in ("run_start", "run_stop"):
            if key not in times and key == "run_stop":
                success = (record.get("metadata") or {}).get("status") == "success"
            times.setdefault(key, ms)
        elif key in ("global_batch_size", "submission_division"):
            facts.setdefault(key, record.get("value"))
    whole = success and len(times) == 2 and times["run_stop"] > times["run_start"]
    return {**facts, "seconds": (times["run_stop"] - times["run_start"]) / 1000 if whole else None}


def _olympic(seconds: Sequence[float | None], dropped: int) -> float | None:
    """The mean without the best and the worst; a run without a time is one of the worst."""
    known = sorted(each for each in seconds if each is not None)
    failed = len(seconds) - len(known)
    if failed > dropped:
        return None
    counted = known[dropped : len(known) - (dropped - failed)]
    return sum(counted) / len(counted) if counted else None


def _throughput(log: bytes, doubts: Counter[str], benchmark: str) -> float | None:
    """Our reader's figure, where it has no doubt of it."""
    try:
        runs = parsed_log(NamedStream("result", iter([log])), our_format("mllog")).runs
    except UserError as error:
        doubts[f"{benchmark}: {str(error)[:60]}"] += 1
        return None
    if len(runs) != 1:
        doubts[f"{benchmark}: {len(runs)} runs"] += 1
        return None
    figure = logged_figure(runs[0].columns(), LogFacts(**runs[0].facts()))
    for doubt in figure.doubts:
        doubts[f"{benchmark}: {doubt.code.value}"] += 1
    return None if {doubt.code.value for doubt in figure.doubts} - HARMLESS else figure.throughput


@cache
def _mxnet_settings(repository: Snapshot, submitter: str) -> dict[str, str]:
    """Precision and layout where every start script that the submitter shows for resnet says the same."""
    scripts = [path for path in repository.paths(f"{submitter}/benchmarks/resnet") if "run_and_time" in path]
    settings = [SETTINGS.findall(repository.text(path)) for path in scripts]
    known = [dict(each) for each in settings if each]
    if known and all(each == {"dtype": "float16", "input-layout": "NHWC"} for each in known):
        return {"precision": "fp16", "layout": "NHWC"}
    return {}


def _hardware(described: dict[str, Any], system: str) -> tuple[str | None, int | None, int | None, list[str]]:
    """Device, nodes, devices a node, and what else is worth a word."""
    nodes = _count(described.get("number_of_nodes"))
    per_node = _count(described.get("accelerators_per_node"))
    name = str(described.get("accelerator_model_name") or "").strip()
    notes = []
    if not per_node or name.lower() in ("", "n/a", "na", "none", "-"):
        processor = re.sub(r"\((?:R|TM)\)|CPU|@.*", "", str(described.get("host_processor_model_name") or ""))
        return (
            " ".join(processor.split()) or None,
            nodes,
            _count(described.get("host_processors_per_node")),
            ["CPU only"],
        )
    if power := re.search(r" *\((\d+ ?W)\)", name):
        notes.append(power[1].replace("W", " W").replace("  ", " "))
        name = name.replace(power[0], "")
    if inner := re.fullmatch(r"NVIDIA Blackwell (?:Ultra )?GPU \((.*)\)", name):
        name = f"NVIDIA {inner[1]}"
    if cooling := re.search(r" (CTS|DLC)$", name):
        notes.append(cooling[1])
        name = name.removesuffix(cooling[0])
    name = re.sub(r"\(R\)|AI Accelerator|Tensor Core GPU", " ", name)
    name = re.sub(r"Gaudi\s+2", "Gaudi2", name)
    name = re.sub(r"^TPU$", "TPU v" + match[1] if (match := re.search(r"v(\d)", system)) else "TPU", name)
    name = re.sub(r"^TPU[- ]", "Google TPU ", name)
    return " ".join(name.replace(" - ", "-").split()), nodes, per_node, notes


def _count(value: Any) -> int | None:
    match = re.match(r"\s*(\d+)", str(value or ""))
    return int(match[1]) or None if match else None


def _framework(stated: str, benchmark: str) -> tuple[str, str | None]:
    """The framework's name in the ledger and its release as the system file gives it."""
    text = " ".join(stated.split())
    named = list(dict.fromkeys(name for word, name in FRAMEWORKS if word in text.lower()))
    several = len(re.findall(r"[,;/]| or | and ", text)) > 0 and len(named) > 1
    if several:
        wanted = [name for name in PREFERRED.get(benchmark, ("pytorch",)) if name in named]
        return (wanted or named)[0], None
    releases = re.findall(r"\d+\.\d+(?:\.\d+)?\w*", text)
    return (named or ["unstated"])[0], releases[0] if len(releases) == 1 and named else None


if __name__ == "__main__":
    main(*sys.argv[1:])
