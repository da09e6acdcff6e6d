"""The speed-ups of every table of the published reports, recomputed from the tables' own rows."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SEEDS = Path(__file__).resolve().parents[3].parent / "shared" / "seeds"
SPEED = ("samples/s", "throughput", "吞吐")
SPEEDUP = ("speedup", "加速比")
# Tables that print a speed-up, and their rows with one, by report.
TABLES = {"000": (0, 0), "001": (0, 0), "002": (2, 12), "003": (3, 13), "004": (2, 12)}


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def tables(text: str) -> Iterator[list[list[str]]]:
    """Runs of table rows; the reports put blank lines between them."""
    rows: list[list[str]] = []
    for line in text.splitlines():
        if line.lstrip().startswith("|"):
            if not re.fullmatch(r"[|\s:-]+", line.strip()):
                rows.append(cells(line))
        elif line.strip():
            if rows:
                yield rows
            rows = []
    if rows:
        yield rows


def speedups(text: str) -> Iterator[list[tuple[float, str]]]:
    """Speed and printed speed-up of each row, for the tables that have both and figures in them."""
    for head, *rows in tables(text):
        columns = [cell.lower() for cell in head]
        speed = next((i for i, cell in enumerate(columns) if cell.startswith(SPEED)), None)
        ratio = next((i for i, cell in enumerate(columns) if cell.startswith(SPEEDUP)), None)
        if speed is None or ratio is None:
            continue
        pairs = [(row[speed], row[ratio]) for row in rows if len(row) > ratio]
        figures = [(float(value), text) for value, text in pairs if re.fullmatch(r"[\d.]+", text)]
        if figures:
            yield figures


def decimals(text: str) -> int:
    return len(text.partition(".")[2])


@pytest.mark.parametrize("report", TABLES)
def test_every_printed_speedup_follows_from_its_own_rows(report):
    paths = sorted(SEEDS.glob(f"{report}*.txt"))
    if not paths:
        pytest.skip("the published reports are not beside this checkout")
    speedup_tables = list(speedups(paths[0].read_text(encoding="utf-8")))
    assert (len(speedup_tables), sum(map(len, speedup_tables))) == TABLES[report]
    wrong = [
        (speed, printed)
        for rows in speedup_tables
        for speed, printed in rows
        if round(speed / rows[0][0], decimals(printed)) != float(printed)
    ]
    assert wrong == []
