"""timm's training benchmarks as a source of the ledger.

python tools/ledger/timm.py SNAPSHOT > src/trainmark/logs/ledger/data/timm.json
"""

from __future__ import annotations

import csv
import re
import sys
from io import StringIO
from pathlib import Path
from typing import Any

from snapshot import Snapshot
from source_file import table, written

FILE = re.compile(
    r"results/benchmark-train-(?P<precision>amp)-(?P<layout>n\w{3})-pt(?P<torch>\d+)-cu(?P<cuda>\d+)-rtx3090\.csv"
)
COLUMNS = (
    "framework",
    "framework_version",
    "device",
    "nodes",
    "devices_per_node",
    "precision",
    "layout",
    "cuda",
    "date",
    "workload",
    "image_size",
    "batch_per_device",
    "throughput",
)


def main(folder: str) -> None:
    repository = Snapshot(Path(folder))
    files = [match for path in repository.paths("results") if (match := FILE.fullmatch(path))]
    tables = [
        table(
            match[0],
            [_row(match, repository, line) for line in csv.DictReader(StringIO(repository.text(match[0])))],
            COLUMNS,
        )
        for match in files
    ]
    source = {
        "title": "timm (pytorch-image-models) training throughput",
        "page": "https://github.com/huggingface/pytorch-image-models/tree/main/results",
        "commit": repository.commit,
        "date": repository.last_change(files[0][0]),
        "confidence": "published",
    }
    print(written(source, tables), end="")


def _row(file: re.Match[str], repository: Snapshot, line: dict[str, str]) -> dict[str, Any]:
    return {
        "framework": "pytorch",
        "framework_version": f"{file['torch'][0]}.{file['torch'][1:]}",
        "device": "NVIDIA GeForce RTX 3090",
        "nodes": 1,
        "devices_per_node": 1,
        "precision": file["precision"],
        "layout": file["layout"].upper(),
        "cuda": f"{file['cuda'][:2]}.{file['cuda'][2:]}",
        "workload": line["model"],
        "image_size": int(line["train_img_size"]),
        "batch_per_device": int(line["train_batch_size"]),
        "throughput": float(line["train_samples_per_sec"]),
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
