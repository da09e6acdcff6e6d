"""MindCV's benchmark page as a source of the ledger.

python tools/ledger/mindcv.py SNAPSHOT > src/trainmark/logs/ledger/data/mindcv.json
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from markdown import rows
from snapshot import Snapshot
from source_file import significant, table, written

PAGE = "benchmark_results.md"
PART = re.compile(r"<summary><b>performance tested on (?P<where>.+?) with graph mode</b></summary>")
DEVICES = {"Ascend 910(8p)": "Ascend 910", "Ascend Atlas 800T A2 machines": "Ascend Atlas 800T A2"}
COLUMNS = (
    "framework",
    "device",
    "compiler",
    "data",
    "workload",
    "image_size",
    "batch_per_device",
    "nodes",
    "devices_per_node",
    "total_devices",
    "throughput",
    "top1",
)
DEVICES_SHOWN = 8  # of both tables
# A rate that differs by more from devices x batch / time of a step is not of the same training.
MOST_DIFFERENT = 0.02


def main(folder: str) -> None:
    repository = Snapshot(Path(folder))
    _, *parts = PART.split(repository.text(PAGE))
    tables, errata = [], []
    for where, text in zip(parts[::2], parts[1::2], strict=True):
        lines = [cells for _, cells in rows(text)]
        tables.append(table(f"{PAGE}, {where}", [_row(DEVICES[where], cells) for cells in lines], COLUMNS))
        errata += [erratum for cells in lines if (erratum := _erratum(DEVICES[where], cells))]
    source = {
        "title": "MindCV benchmark results on ImageNet-1K",
        "page": f"https://github.com/mindspore-lab/mindcv/blob/main/{PAGE}",
        "commit": repository.commit,
        "date": repository.last_change(PAGE),
        "confidence": "published",
    }
    print(written(source, tables, errata), end="")


def _row(device: str, cells: dict[str, str]) -> dict[str, Any]:
    devices = int(cells["cards"])
    one_node = {"nodes": 1, "devices_per_node": devices}
    return {
        "framework": "mindspore",
        "device": device,
        "compiler": f"graph mode, {cells['jit level']}",
        "data": "images",
        "workload": _workload(cells),
        "image_size": int(cells["resolution"].partition("x")[0]),
        "batch_per_device": int(cells["batch size"]),
        **(one_node if devices <= DEVICES_SHOWN else {"total_devices": devices}),
        "throughput": float(cells["img/s"]),
        "top1": float(cells["acc@top1"]) if cells["acc@top1"] else None,
    }


def _workload(cells: dict[str, str]) -> str:
    return cells["model name"].lower()


def _erratum(device: str, cells: dict[str, str]) -> dict[str, Any] | None:
    # One time is printed with a comma for the point.
    numbers = (cells[name].replace(",", ".") for name in ("cards", "batch size", "ms/step"))
    devices, batch, step = map(float, numbers)
    of = {"workload": _workload(cells), "device": device, "throughput": float(cells["img/s"])}
    if devices > DEVICES_SHOWN:
        says = f"{devices:g} cards of {batch:g} images in a table of {DEVICES_SHOWN}: perhaps exchanged."
        return {"of": of, "says": says}
    computed, printed = 1000 * devices * batch / step, float(cells["img/s"])
    if abs(printed / computed - 1) <= MOST_DIFFERENT:
        return None
    says = f"{printed:g} images/s is not {devices:g} x {batch:g} images in {step:g} ms, which is "
    return {"of": of, "says": f"{says}{significant(computed)} images/s."}


if __name__ == "__main__":
    main(*sys.argv[1:])
