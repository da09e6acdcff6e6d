"""The training tables of llm-foundry as a source of the ledger.

python tools/ledger/llm_foundry.py SNAPSHOT > src/trainmark/logs/ledger/data/llm-foundry.json
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path
from typing import Any

from markdown import rows
from snapshot import Snapshot
from source_file import table, written

README = "scripts/train/benchmarking/README.md"
DEVICES = {
    "h100_80gb": "NVIDIA H100 80GB",
    "a100_80gb": "NVIDIA A100 80GB",
    "a100_40gb": "NVIDIA A100 40GB",
}
PRECISIONS = {"amp_bf16": "bf16", "amp_fp16": "fp16", "amp_fp8": "fp8", "bf16": "bf16"}
COLUMNS = (
    "workload",
    "framework",
    "unit",
    "device",
    "precision",
    "sequence_length",
    "total_devices",
    "batch_per_device",
    "throughput",
    "mfu",
    "note",
)
ERRATA = (
    {
        "of": {"precision": "fp8"},
        "says": "MFU is relative to a peak twice that of the BF16 tables: the 1B model at length 32768 has"
        " 33.54 % at 12,025 tokens/s a device in BF16, and 17.55 % at 12,580 in FP8. Compare tokens/s.",
    },
)


def main(folder: str) -> None:
    repository = Snapshot(Path(folder))
    titled = groupby(rows(repository.text(README)), key=lambda row: row[0][2])
    tables = [table(title, [_row(cells) for _, cells in group], COLUMNS) for title, group in titled]
    source = {
        "title": "llm-foundry: MPT training benchmarks",
        "page": f"https://github.com/mosaicml/llm-foundry/blob/main/{README}",
        "commit": repository.commit,
        "date": repository.last_change(README),
        "confidence": "published",
    }
    print(written(source, tables, ERRATA), end="")


def _row(cells: dict[str, str]) -> dict[str, Any]:
    devices, batch = int(cells["# GPUs"]), int(cells["GlobalBatchSize"])
    notes = [cells["Sharding Strategy"], f"micro-batch {cells['MicroBatchSize']}"]
    notes += ["activation checkpointing"] * (cells["Activation Checkpointing"] == "True")
    notes += ["CPU offload"] * (cells["Activation CPUOffload"] == "True")
    return {
        "workload": f"mpt-{cells['Model'].lower()}",
        "framework": "pytorch",
        "unit": "tokens/s",
        "device": DEVICES[cells["GPU"]],
        "precision": PRECISIONS[cells["Precision"]],
        "sequence_length": int(cells["SeqLen (T)"]),
        "total_devices": devices,
        "batch_per_device": batch // devices if batch % devices == 0 else None,
        "throughput": int(cells["Throughput (T/s)"]),
        "mfu": float(cells["MFU"]),
        "note": ", ".join(notes),
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
