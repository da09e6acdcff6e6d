"""Lambda's PyTorch throughput tables v2 as a source of the ledger.

    python tools/ledger/lambda_v2.py SNAPSHOT > src/trainmark/logs/ledger/data/lambda.json

One row for hosts that are alike: `runs` has all of them, the throughput is their median.
"""

from __future__ import annotations

import csv
import re
import sys
from collections import defaultdict
from io import StringIO
from pathlib import Path
from statistics import median
from typing import Any

from snapshot import Snapshot
from source_file import significant, table, written

FILES = {
    "amp": "pytorch/pytorch-train-throughput-v2-fp16.csv",
    "fp32": "pytorch/pytorch-train-throughput-v2-fp32.csv",
}
HOST = re.compile(
    r"(?P<owner>.*?)_?(?P<count>\d+)x(?P<device>G?[HB]\d00_\d+GB(?:_SXM5?|_PCIe)?)_.*_v2(?:_bk)?"
)
WORKLOADS = {
    "ssd": ("ssd300", "images/s"),
    "bert_base_squad": ("bert-base-squad", "sequences/s"),
    "bert_large_squad": ("bert-large-squad", "sequences/s"),
    "gnmt": ("gnmt", "tokens/s"),
    "resnet50": ("resnet50", "images/s"),
    "tacotron2": ("tacotron2", "samples/s"),
    "waveglow": ("waveglow", "samples/s"),
}
COLUMNS = (
    "framework",
    "nodes",
    "workload",
    "unit",
    "precision",
    "layout",
    "device",
    "batch_per_device",
    "devices_per_node",
    "system",
    "throughput",
    "runs",
    "note",
)
# Of the settings for 192 GB; the others state their batch for several sizes of memory.
B200_RESNET_BATCH = 3328
ERRATA = (
    {
        "of": {"workload": "resnet50"},
        "says": "The logs say memory_format nchw, which is not the fast layout for 16 bit: B200 and H200 "
        "come out alike (3,076 and 3,079), so that these figures are a floor.",
    },
    {
        "of": {
            "workload": "resnet50",
            "precision": "amp",
            "devices_per_node": 1,
            "device": "NVIDIA H100 80GB SXM5",
        },
        "says": "Of 39 hosts, 38 give one device 2,783 to 2,800 images/s, one gives 2,683.",
    },
    {
        "of": {"workload": "bert-base-squad", "precision": "amp", "devices_per_node": 8},
        "says": "Eight H200 are printed at 19.6 times one H200 of the same machine (18,291 and 932), eight "
        "H100 at 11 times one: batch or rule differ between the lines, and no scaling follows from them.",
    },
    {
        "of": {"workload": "tacotron2", "device": "NVIDIA H200 140GB SXM", "devices_per_node": 8},
        "says": "Five machines with the same eight devices differ by more than a factor of two, and FP32 is "
        "printed faster than FP16 on four of them.",
    },
    {
        "of": {"workload": "ssd300", "device": "NVIDIA GH200 96GB", "precision": "amp"},
        "says": "A fourth line of this device, marked _bk, prints 0 for SSD in FP16; it is left out.",
    },
)


def main(folder: str) -> None:
    repository = Snapshot(Path(folder))
    tables = [
        table(f"{precision}, {path}", _rows(precision, repository.text(path)), COLUMNS)
        for precision, path in FILES.items()
    ]
    source = {
        "title": "Lambda deep learning benchmark, PyTorch training throughput v2",
        "page": "https://github.com/lambdal/deeplearning-benchmark/tree/master/pytorch",
        "commit": repository.commit,
        "date": repository.last_change(FILES["amp"]),
        "confidence": "published",
    }
    print(written(source, tables, ERRATA), end="")


def _rows(precision: str, text: str) -> list[dict[str, Any]]:
    alike: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for line in csv.DictReader(StringIO(text)):
        host = HOST.fullmatch(line.pop(""))
        assert host, line
        owner = "LambdaOD" if host["owner"].startswith("LambdaOD") else host["owner"]
        for column, printed in line.items():
            if float(printed):
                alike[column, host["device"], host["count"], owner].append(float(printed))
    return [_row(precision, *key, values) for key, values in sorted(alike.items())]


def _row(
    precision: str, column: str, device: str, count: str, owner: str, values: list[float]
) -> dict[str, Any]:
    workload, unit = WORKLOADS[column]
    b200 = column == "resnet50" and device.startswith("B200") and precision == "amp"
    return {
        "framework": "pytorch",
        "nodes": 1,
        "workload": workload,
        "unit": unit,
        "precision": precision,
        "layout": "NCHW" if column == "resnet50" else None,
        "device": "NVIDIA " + device.replace("_", " "),
        "batch_per_device": B200_RESNET_BATCH if b200 else None,
        "devices_per_node": int(count),
        "system": owner,
        "throughput": significant(median(values), 8),
        "runs": [significant(value, 8) for value in values] if len(values) > 1 else None,
        "note": f"median of {len(values)} hosts" if len(values) > 1 else None,
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
