"""The published reports themselves, where they lie beside the checkout: every number of every table."""

import re
from pathlib import Path

SEEDS = Path(__file__).resolve().parents[3].parent / "shared" / "seeds"
# A phrase of each report's first line, and the ledger's name for it.
REPORTS = {
    "NGC MxNet ResNet50V1.5": "performance-report-mxnet",
    "NGC TensorFlow ResNet50V1.5": "airank-tensorflow",
    "MindSpore-ResNet50v1.5": "dlperf-mindspore",
    "PyTorch ResNet50 v1.5": "dlperf-ngc-pytorch",
    "OneFlow ResNet50-V1.5": "oneflow-2020-08",
}
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def reports():
    """The text of each report by its name in the ledger."""
    texts = {}
    for path in sorted(SEEDS.glob("*.txt")):
        text = path.read_text(encoding="utf-8")
        title = text.partition("\n")[0]
        texts.update({name: text for phrase, name in REPORTS.items() if phrase in title})
    return texts


def tables(text):
    """Each table as its header and rows; blank lines between rows do not end one."""
    rows = []
    for line in text.splitlines():
        if line.lstrip().startswith("|"):
            rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
        elif line.strip() and rows:
            yield rows[0], rows[2:]
            rows = []
    if rows:
        yield rows[0], rows[2:]


def results(text):
    """(header, row) of every row of the tables of results, as numbers; what is left empty is None."""
    for header, rows in tables(text):
        for row in rows:
            cells = [number(cell) for cell in row]
            if any(cell is not None for cell in cells):
                yield header, cells


def number(cell):
    match = NUMBER.fullmatch(cell) or re.fullmatch(r"(\d+)卡", cell)
    return float((match[1] if match.lastindex else match[0]).replace(",", "")) if match else None
