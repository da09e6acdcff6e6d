"""Logs made to give the per-file speeds of the published reports give their whole printed dictionary."""

import ast
import re
from pathlib import Path

import pytest
from protocol_logs import Maker, matrix, mindspore, place, pytorch

from trainmark.audit import protocols

SEEDS = Path(__file__).resolve().parents[3].parent / "shared" / "seeds"
PRINTED_RUN = re.compile(r"^\S+/(\d+)n(\d+)g/(\S+_b(\d+)_\S+_(\d+)\.log) \{(.*)\}$", re.M)


def published(prefix: str) -> str:
    paths = sorted(SEEDS.glob(f"{prefix}*.txt"))
    if not paths:
        pytest.skip("the published reports are not beside this checkout")
    return paths[0].read_text(encoding="utf-8")


def printed_dictionary(report: str) -> str:
    return re.search(r"^\{'r.*?\}\}\}$", report, re.M | re.S)[0]


def rebuild(report: str, folder: Path, make: Maker) -> int:
    """A log for each printed line, with the speed that stands last in it; how many."""
    rows = PRINTED_RUN.findall(report)
    for nodes, devices, name, batch, repeat, speeds in rows:
        speed = ast.literal_eval("{" + speeds + "}")[int(repeat)]
        ranks = int(nodes) * int(devices)
        place(folder, f"{nodes}n{devices}g", name, make(speed, int(batch) * ranks, ranks))
    return len(rows)


@pytest.mark.parametrize(
    ("prefix", "name", "window", "make", "files", "topologies"),
    [
        ("002", "dlperf-mindspore", (100, 200), mindspore, 30, 6),
        ("003", "dlperf-pytorch-rn50", (20, 120), pytorch, 25, 5),
    ],
    ids=["MindSpore FP32", "NVIDIA PyTorch AMP"],
)
def test_the_printed_dictionary_comes_out_to_the_last_digit(
    tmp_path, prefix, name, window, make, files, topologies
):
    report = published(prefix)
    assert rebuild(report, tmp_path, make) == files
    table = protocols.apply(name, tmp_path, *window)
    printed = printed_dictionary(report)
    assert table == ast.literal_eval(printed)
    assert sum(len(cases) for cases in table.values()) == topologies
    assert protocols.as_printed(table) == printed


INVENTED = {
    "1n1g": [101.11, 100.02, 102.57],
    "1n4g": [398.4, 396.31, 399.99],
    "2n8g": [1500.5, 1490.13, 1511.0],
    "16n8g": [11000.01, 10900.0, 11900.5],
}
THEIRS = """\
{'rn50': {'16n8g': {'average_speed': 11266.84,
                    'batch_size_per_device': 128,
                    'median_speed': 11000.01,
                    'speedup': 108.79},
          '1n1g': {'average_speed': 101.23,
                   'batch_size_per_device': 128,
                   'median_speed': 101.11,
                   'speedup': 1.0},
          '1n4g': {'average_speed': 398.23,
                   'batch_size_per_device': 128,
                   'median_speed': 398.4,
                   'speedup': 3.94},
          '2n8g': {'average_speed': 1500.54,
                   'batch_size_per_device': 128,
                   'median_speed': 1500.5,
                   'speedup': 14.84}}}"""


@pytest.mark.parametrize(
    ("name", "window", "make"),
    [("dlperf-mindspore", (100, 200), mindspore), ("dlperf-pytorch-rn50", (None, None), pytorch)],
)
def test_an_invented_matrix_gives_its_averages_medians_and_speedups(tmp_path, name, window, make):
    table = protocols.apply(name, matrix(tmp_path, INVENTED, make), *window)
    assert protocols.as_printed(table) == THEIRS


@pytest.mark.parametrize(
    ("name", "window", "make"),
    [("dlperf-mindspore", (100, 200), mindspore), ("dlperf-pytorch-rn50", (None, None), pytorch)],
)
def test_on_even_logs_ours_agrees_with_theirs_and_sixteen_nodes_is_the_only_doubt(
    tmp_path, name, window, make
):
    reading = protocols.read(name, matrix(tmp_path, INVENTED, make), *window)
    assert [doubt.code for doubt in reading.doubts] == ["theirs-cannot-read"]
    for case, entry in reading.ours["rn50"]["b128_fp32"].items():
        assert entry["median_speed"] == pytest.approx(reading.table["rn50"][case]["median_speed"], rel=1e-5)
        assert entry["speedup"] == reading.table["rn50"][case]["speedup"]
