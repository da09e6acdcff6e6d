"""The ledger against the published reports, number by number."""

import re

import pytest
from seed_tables import REPORTS, SEEDS, reports, results

from trainmark.logs.ledger import find, load

pytestmark = pytest.mark.skipif(
    not SEEDS.is_dir(), reason="the published reports are not beside the checkout"
)


def rows_of(source):
    return [entry.row for entry in find(load(), source=source)]


def fits(row, header, cells):
    """Whether a row of the ledger says what a row of a report with one throughput says."""
    fields = dict(zip(header, cells, strict=True))
    nodes = fields.get("node_num") or fields.get("node num") or 1
    devices = fields.get("gpu num") or fields.get("gpu_num") or nodes * fields.get("gpu_num_per_node", 1)
    published = {
        "batch_per_device": fields.get("batch_size_per_device") or fields.get("bsz/gpu"),
        "memory_mb": fields.get("GPU Memory Usage"),
        "throughput": fields.get("samples/s") or fields.get("samples/s(PyTorch)") or fields.get("Throughput"),
        "speedup": fields.get("speedup") or fields.get("Speedup"),
    }
    return (row.nodes, row.devices) == (nodes, devices) and all(
        getattr(row, name) == value for name, value in published.items() if value is not None
    )


def test_each_report_is_a_source_of_the_ledger():
    assert set(reports()) == set(REPORTS.values())


@pytest.mark.parametrize("source", ["dlperf-mindspore", "dlperf-ngc-pytorch", "oneflow-2020-08"])
def test_every_row_of_a_table_with_one_throughput_a_row_is_in_the_ledger_once(source):
    published = list(results(reports()[source]))
    matches = [sum(fits(row, header, cells) for row in rows_of(source)) for header, cells in published]
    assert matches == [1] * len(rows_of(source))


def test_every_cell_of_the_mxnet_table_is_in_the_ledger():
    published = {
        (int(devices), column, value)
        for header, (devices, *values) in results(reports()["performance-report-mxnet"])
        for column, value in zip(header[1:], values, strict=True)
    }
    ledger_cells = {
        (row.devices, f"{row.precision.upper()}(BS={row.batch_per_device})", row.throughput)
        for row in rows_of("performance-report-mxnet")
    }
    assert ledger_cells == published


def test_every_cell_of_the_tensorflow_table_is_in_the_ledger():
    published = {tuple(cells) for _, cells in results(reports()["airank-tensorflow"])}
    ledger_rows = {
        (row.devices, row.time_to_train_s, row.throughput, row.top1, row.speedup)
        for row in rows_of("airank-tensorflow")
    }
    assert ledger_rows == published


@pytest.mark.parametrize(("source", "files"), [("dlperf-mindspore", 30), ("dlperf-ngc-pytorch", 25)])
def test_every_run_that_a_report_prints_is_in_the_ledger(source, files):
    text = reports()[source]
    longest = re.findall(r"/(\d)n(\d)g/\w+\.log \{([^}]*)\}", text)
    assert len(longest) == files
    published = {
        (int(nodes), int(devices)): {
            int(run): float(speed) for run, speed in re.findall(r"(\d): ([\d.]+)", speeds)
        }
        for nodes, devices, speeds in longest
    }
    ledger_runs = {
        (row.nodes, row.devices_per_node): dict(enumerate(row.runs, 1)) for row in rows_of(source) if row.runs
    }
    assert ledger_runs == published


@pytest.mark.parametrize("source", ["dlperf-mindspore", "dlperf-ngc-pytorch"])
def test_the_largest_batch_that_a_report_states_is_in_the_ledger(source):
    stated = re.findall(r"(?:max batch size=|最大batch size为)(\d+)", reports()[source])
    assert {row.max_batch for row in rows_of(source) if row.max_batch} == set(map(int, stated))
