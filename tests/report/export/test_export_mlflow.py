"""MLflow's file store: its layout, and MLflow itself where it is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
import yaml
from exported_runs import exported, odd_run

ONE = "pytorch-fp32-b32-1n1g"
READ = """
import json, sys
import mlflow
client = mlflow.MlflowClient(sys.argv[1])
(experiment,) = client.search_experiments()
print(json.dumps({
    run.info.run_name: [
        run.info.status, run.data.params["framework"], run.data.metrics.get("trial_throughput"),
        len(client.get_metric_history(run.info.run_id, "loss")),
    ]
    for run in client.search_runs([experiment.experiment_id])
}))
"""


@pytest.fixture
def store(run, tmp_path):
    return exported(run, "mlflow", tmp_path / "out") / "mlruns"


def runs_of(store):
    """The MLflow runs by name: their folder and their meta.yaml."""
    metas = {path.parent: yaml.safe_load(path.read_text()) for path in store.glob("*/*/meta.yaml")}
    return {meta["run_name"]: (folder, meta) for folder, meta in metas.items()}


def test_the_run_is_one_experiment_under_its_own_name(store):
    (folder,) = store.iterdir()
    meta = yaml.safe_load((folder / "meta.yaml").read_text())
    assert (meta["name"], meta["experiment_id"], meta["lifecycle_stage"]) == ("mine", folder.name, "active")
    assert folder.name.isdecimal()


def test_every_trial_is_a_run_and_a_crashed_one_has_failed(store):
    runs = runs_of(store)
    assert {name: meta["status"] for name, (_, meta) in runs.items()} == {
        f"{ONE}/01": 3,
        f"{ONE}/02": 3,
        f"{ONE}/03": 3,
        "pytorch-fp32-b32-1n8g/01": 3,
        "pytorch-fp32-b32-1n8g/02": 4,
    }
    assert all(meta["run_id"] == folder.name for folder, meta in runs.values())


def test_a_trial_has_its_key_as_parameters_its_steps_as_metrics_and_its_doubts_as_a_tag(store):
    folder, meta = runs_of(store)[f"{ONE}/02"]
    assert (folder / "params" / "precision").read_text() == "fp32"
    assert (folder / "tags" / "trainmark.doubts").read_text() == "data-bound"
    points = [line.split() for line in (folder / "metrics" / "loss").read_text().splitlines()]
    assert [int(step) for _, _, step in points] == list(range(120))
    assert float(points[7][1]) == 7 - 0.07
    assert all(int(moment) >= meta["start_time"] for moment, _, _ in points)
    assert (folder / "metrics" / "trial_throughput").read_text().split()[1] == "102.0"


def test_text_with_newlines_becomes_one_line_and_no_other_file(tmp_path):
    run = odd_run(tmp_path / "runs", "odd", variant="a\nb: c", workload="../../x")
    store = exported(run, "mlflow", tmp_path / "out", "me\nstatus: 4") / "mlruns"
    ((folder, meta),) = runs_of(store).values()
    assert (folder / "params" / "variant").read_text() == "a b: c"
    assert (meta["user_id"], meta["status"]) == ("me status: 4", 3)


@pytest.mark.skipif(find_spec("mlflow") is None, reason="pip install -r requirements/test.txt")
def test_mlflow_itself_reads_the_store(store):
    environment = {**os.environ, "MLFLOW_ALLOW_FILE_STORE": "true"}
    done = subprocess.run(
        [sys.executable, "-c", READ, store.as_uri()], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    runs = json.loads(done.stdout)
    assert runs[f"{ONE}/03"] == ["FINISHED", "pytorch", 101.0, 120]
    assert runs["pytorch-fp32-b32-1n8g/02"][0] == "FAILED"
