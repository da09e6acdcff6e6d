"""MLPerf in the ledger: how its figures are made from logs, and whether they can be true."""

import csv
import json
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

from trainmark.logs.ledger import load
from trainmark.logs.ledger.load import parse

ROOT = Path(__file__).resolve().parents[3]
CORPUS = ROOT.parent / "shared" / "corpus" / "logs"
ROUNDS = ("v1.0", "v1.1", "v2.0", "v2.1", "v3.0", "v3.1", "v4.0", "v4.1", "v5.0", "v5.1")
RATE = 1000.0


def computed(version):
    return [entry.row for entry in load() if entry.source == f"mlperf-{version}"]


def log(epochs, status="success", rate=RATE):
    """A run of so many epochs of 10,000 samples."""
    ms = 1_600_000_000_000.0
    records = [
        ("global_batch_size", 64, {}),
        ("train_samples", 10_000, {}),
        ("submission_benchmark", "resnet", {}),
        ("submission_division", "closed", {}),
    ]
    lines = [record(ms, *each) for each in records] + [record(ms, "run_start", None, {})]
    for number in range(epochs):
        lines.append(record(ms, "epoch_start", None, {"epoch_num": number}))
        ms += 1000 * 10_000 / rate
        lines.append(record(ms, "epoch_stop", None, {"epoch_num": number}))
    return "\n".join([*lines, record(ms, "run_stop", None, {"status": status})]) + "\n"


def record(ms, key, value, metadata):
    fields = {"namespace": "", "time_ms": ms, "key": key, "value": value, "metadata": metadata}
    return f":::MLLOG {json.dumps(fields)}"


@pytest.fixture
def tool(tmp_path):
    """Run the script over a repository with these logs of one system; return the rows that it writes."""

    def run(logs):
        results = tmp_path / "Maker/results/box_n1/resnet"
        results.mkdir(parents=True)
        (tmp_path / "Maker/systems").mkdir()
        described = {
            "number_of_nodes": "1",
            "accelerators_per_node": "8",
            "framework": "PyTorch NVIDIA Release 24.04",
        }
        described["accelerator_model_name"] = "NVIDIA Blackwell GPU (B200-SXM-180GB)"
        (tmp_path / "Maker/systems/box_n1.json").write_text(json.dumps(described))
        for number, text in enumerate(logs):
            (results / f"result_{number}.txt").write_text(text)
        git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@x.invalid"]
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "results"]):
            subprocess.run([*git, *words], check=True)
        words = [sys.executable, str(ROOT / "tools/ledger/mlperf.py"), str(tmp_path), "v9.9"]
        written = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        return [entry.row for entry in parse(written, "mlperf-v9.9.json")]

    return run


def test_the_time_is_the_mean_without_best_and_worst_and_the_throughput_is_the_readers(tool):
    (row,) = tool([log(epochs) for epochs in (21, 30, 31, 32, 90)])
    assert row.time_to_train_s == 310
    assert row.throughput == pytest.approx(RATE, rel=0.01)
    assert (row.submitter, row.system, row.device) == ("Maker", "box_n1", "NVIDIA B200-SXM-180GB")
    assert (row.topology, row.batch_per_device, row.framework, row.framework_version) == (
        "1n8g",
        8,
        "pytorch",
        "24.04",
    )


def test_a_run_that_failed_is_the_worst_and_two_of_them_leave_no_time(tool):
    (row,) = tool([log(epochs) for epochs in (20, 30, 32, 34)] + [log(5, "aborted")])
    assert row.time_to_train_s == 320


def test_two_failed_runs_leave_no_time_but_a_throughput(tool):
    (row,) = tool([log(epochs) for epochs in (20, 30, 32)] + [log(5, "aborted")] * 2)
    assert row.time_to_train_s is None and row.throughput == pytest.approx(RATE, rel=0.01)


def test_runs_of_different_speed_leave_no_throughput(tool):
    (row,) = tool([log(30, rate=rate) for rate in (800, 900, 1000, 1100, 1200)])
    assert row.throughput is None and row.time_to_train_s


def test_every_round_since_2021_is_there_and_most_rows_have_both_figures():
    rows = [row for version in ROUNDS for row in computed(version)]
    assert all(len(computed(version)) > 60 for version in ROUNDS)
    assert sum(bool(row.throughput and row.time_to_train_s) for row in rows) > 0.9 * len(rows)
    assert all(row.device and row.submitter and row.system for row in rows)


def test_throughput_times_time_is_about_the_same_number_of_samples_for_all_who_train_a_model():
    """Large systems need more of them, the open division less; a figure of another unit would stand apart."""
    rows = [row for version in ROUNDS for row in computed(version) if row.throughput and row.time_to_train_s]
    for workload in {row.workload for row in rows}:
        samples = [row.throughput * row.time_to_train_s for row in rows if row.workload == workload]
        apart = [each for each in samples if not 0.5 < each / median(samples) < 2]
        assert len(apart) <= 0.15 * len(samples), workload
        closed = [
            row.throughput * row.time_to_train_s / median(samples)
            for row in rows
            if row.workload == workload and "open division" not in (row.note or "")
        ]
        assert min(closed) > 0.2 and max(closed) < 5, workload


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of logs is not beside the checkout")
def test_the_ledger_has_the_throughputs_that_were_worked_out_by_hand():
    expected = json.loads((CORPUS / "EXPECTED.json").read_text(encoding="utf-8"))
    sources = csv.reader((CORPUS / "SOURCES.tsv").read_text(encoding="utf-8").splitlines(), delimiter="\t")
    ratios = []
    for repository, path, _, name in (
        row for row in sources if row[0].startswith("mlcommons/training_results_v")
    ):
        figure = expected.get(name, {}).get("throughput")
        submitter, _, system, benchmark = path.split("/")[:4]
        rows = [
            row
            for row in computed(repository.rpartition("_")[2])
            if (row.submitter, row.system) == (submitter, system)
            and BENCHMARKS.get(benchmark) == row.workload
        ]
        ratios += [row.throughput / figure for row in rows if figure and row.throughput]
    assert len(ratios) > 20
    assert min(ratios) > 0.9 and max(ratios) < 1.1


BENCHMARKS = {
    "resnet": "resnet50",
    "bert": "bert-large",
    "maskrcnn": "mask-rcnn",
    "unet3d": "unet3d",
    "rnnt": "rnn-t",
    "dlrm": "dlrm",
    "dlrm_dcnv2": "dlrm-dcnv2",
    "gpt3": "gpt3-175b",
    "retinanet": "retinanet",
    "llama2_70b_lora": "llama2-70b-lora",
    "llama31_405b": "llama3.1-405b",
    "llama31_8b": "llama3.1-8b",
    "stable_diffusion": "stable-diffusion-v2",
    "flux1": "flux.1-schnell",
    "gnn": "r-gat",
    "rgat": "r-gat",
}
