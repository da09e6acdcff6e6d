"""The performance pages of Megatron-Bridge (NeMo) as a source of the ledger.

    python tools/ledger/megatron_bridge.py SNAPSHOT > src/trainmark/logs/ledger/data/megatron-bridge.json

A figure in parentheses is a second row: the same run with another recipe of quantisation.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from markdown import rows
from snapshot import Snapshot
from source_file import table, written

PAGES = ("docs/performance-summary.md", "docs/performance-summary-archive.md")
PRECISIONS = {"BF16": "bf16", "NVFP4": "fp4"}
PRECISIONS |= dict.fromkeys(("MXFP8", "FP8", "FP8-CS", "FP8-MX"), "fp8")
COLUMNS = (
    "workload",
    "framework",
    "framework_version",
    "unit",
    "date",
    "device",
    "precision",
    "sequence_length",
    "total_devices",
    "batch_per_device",
    "throughput",
    "tflops_per_device",
    "note",
)
ERRATA = (
    {
        "of": {"workload": "gpt-oss-120b", "sequence_length": 4096},
        "says": "The TFLOP/s count 27.2 TFLOP for 1,000 tokens up to container 26.04.01 and 32.6 from 26.06 "
        "on, 20 % more for the same model and length: compare releases by tokens, not by TFLOP/s.",
    },
    {
        "of": {"workload": "gpt-oss-120b", "framework_version": "26.06.01"},
        "says": "The source calls these a known regression: the containers before and after are up to 1.6 "
        "times as fast.",
    },
    {
        "of": {"workload": "deepseek-v3", "framework_version": "25.09", "device": "NVIDIA H100"},
        "says": "A second figure, 330 TFLOP/s, has no tokens/s of its own in the source; it is left out.",
    },
)
TOKENS, TFLOPS = "Tokens / sec / GPU", "Model TFLOP / sec / GPU"
PARALLEL = ("TP", "PP", "CP", "VP", "EP")


def main(folder: str) -> None:
    repository = Snapshot(Path(folder))
    page_rows = [row for page in PAGES for row in rows(repository.text(page))]
    tables = []
    for container, group in groupby(page_rows, key=lambda row: row[0][2]):
        tables.append(table(container, [each for row in group for each in _rows(*row)], COLUMNS))
    source = {
        "title": "NeMo Megatron-Bridge: performance summary and archive",
        "page": f"https://github.com/NVIDIA-NeMo/Megatron-Bridge/blob/main/{PAGES[0]}",
        "commit": repository.commit,
        "date": repository.last_change(PAGES[0]),
        "confidence": "published",
    }
    print(written(source, tables, ERRATA), end="")


def _rows(headings: dict[int, str], cells: dict[str, str]) -> Iterator[dict[str, Any]]:
    release = headings[2].split()[0]
    kind, _, named = headings[4].partition(": ")
    model, system = (named, cells["System"]) if kind == "Model" else (cells["Model"], named)
    phase = headings[3].split()[0].lower()
    workload, variant = _workload(model)
    devices = int(cells["#-GPUs"])
    batch = int(cells["GBS"])
    tokens, rates, precisions = (_both(cells.get(name, "")) for name in (TOKENS, TFLOPS, "Precision"))
    for index, speed in enumerate(tokens):
        precision = precisions[min(index, len(precisions) - 1)]
        layout = [
            f"{name} {_both(cells[name])[0]}"
            for name in PARALLEL
            if _both(cells[name])[0] not in ("1", "n/a")
        ]
        notes = [
            precision if PRECISIONS.get(precision) == "fp8" else None,
            variant,
            f"micro-batch {cells['MBS']}",
            # The second figure may have a layout of its own, which stands in the same cells.
            " ".join(layout) if index == 0 else "the figure in parentheses",
        ]
        yield {
            "workload": workload if phase == "pre-training" else f"{workload}-{phase}",
            "framework": "nemo",
            "framework_version": release,
            "unit": "tokens/s",
            "date": f"20{release[:2]}-{release[3:5]}",
            "device": system.replace("DGX-", "NVIDIA "),
            "precision": PRECISIONS.get(precision),
            "sequence_length": int(cells["Sequence Length"]),
            "total_devices": devices,
            "batch_per_device": batch // devices if batch % devices == 0 else None,
            "throughput": int(speed) * devices,
            "tflops_per_device": int(rates[index]),
            "note": ", ".join(filter(None, notes)),
        }


def _both(cell: str) -> list[str]:
    """`37556 (36108)` as two figures, without the mark of a footnote."""
    return re.sub(r"\[\^[^]]*\]", "", cell).replace("(", " ").replace(")", " ").split() or [""]


def _workload(model: str) -> tuple[str, str | None]:
    """The ledger's name of a model, and what stands in parentheses behind it."""
    name, _, variant = model.partition("(")
    plain = re.sub(r"[\s_]+", "-", name.strip().lower()).replace("deepseekv", "deepseek-v")
    return plain, variant.strip(") ") or None


if __name__ == "__main__":
    main(*sys.argv[1:])
