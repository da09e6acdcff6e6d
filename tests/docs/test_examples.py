"""The examples, run through the command as a reader would run them."""

import json
import sys

import pytest


@pytest.mark.parametrize(("example", "unit"), [("probe", "rows/s"), ("command", "points/s")])
def test_an_example_ends_with_a_figure_and_a_falling_loss(example, unit, reader):
    suite = f"examples/{example}/suite.yaml"
    ran = reader.trainmark("run", suite, "--name", "example", "--repeats", "2", "--json")
    assert ran.returncode == 0, ran.stderr
    (result,) = json.loads(ran.stdout)["results"]
    assert result["throughput"]["n"] == 2
    assert result["throughput"]["unit"] == unit
    assert not {"nan-loss", "loss-not-falling"} & {doubt["code"] for doubt in result["doubts"]}
    for figure in reader.folder.glob("runs/example/trials/*/*/figure.json"):
        metrics = json.loads(figure.read_text(encoding="utf-8"))["figure"]
        assert metrics["loss_last"] < metrics["loss_first"] / 2
        assert metrics["window"]["stop"] == 120


def test_the_probe_example_trains_alike_without_trainmark(reader):
    ran = reader.types(sys.executable, "examples/probe/train.py", "--steps", "21")
    assert ran.returncode == 0
    assert ran.stdout.splitlines()[-1].startswith("step 20: loss 0.")
