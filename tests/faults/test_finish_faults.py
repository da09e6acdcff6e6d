"""Training to a finish line, killed with its harness in the middle: it goes on from its checkpoint."""

import json
import signal

import pytest

import image_set
import small_resnet

torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install 'trainmark[pytorch]'")


@pytest.fixture
def course(trainmark, tmp_path, monkeypatch):
    """Two epochs of six steps of a small network, with a checkpoint after every second."""
    code = small_resnet.copy_package(small_resnet.FOUR_STAGES, tmp_path / "code")
    monkeypatch.setenv("PYTHONPATH", str(code))
    image_set.make(tmp_path / "stripes", classes=3, train=24, val=7)
    trainmark.suite(
        workload="resnet50",
        dataset="stripes",
        image_size=32,
        batch_per_device=4,
        epochs=2,
        threads=1,
        checkpoint={"steps": 2},
    )
    return trainmark


def losses(folder):
    """Every loss that was ever reported of a step."""
    by_step, events = {}, folder / "events" / "rank0.jsonl"
    for line in events.read_text().splitlines() if events.exists() else ():
        event = json.loads(line)
        if event["event"] == "step":
            by_step.setdefault(event["step"], set()).add(event["loss"])
    return by_step


def struck(course, blow, after, *command):
    """Starts or goes on, and is hit when more than so many steps were taken."""
    process = course.start("run", *command)
    running = "*/trials/*/.01.part"
    course.wait_for(lambda: any(len(losses(path)) > after for path in course.runs.glob(running)), "steps")
    process.send_signal(blow)
    process.communicate()
    course.wait_until_gone()


def test_a_killed_harness_and_an_interrupted_one_go_on_to_the_same_curve(course):
    assert course.run("--name", "whole").code == 0
    whole = course.place("01")
    expected = losses(whole)
    whole.parents[2].rename(course.folder / "whole")
    struck(course, signal.SIGKILL, 3, "suite.yaml")
    newest = max(course.place(".01.part").glob("checkpoints/step-*/rank0.npz"))
    newest.write_bytes(newest.read_bytes()[:-1])  # as a disk may lose the end of it
    struck(course, signal.SIGTERM, 6, "--resume")
    done = course.resume()
    assert done.code == 0, done.errors
    assert losses(course.place("01")) == expected  # some twice, and all with the same bits
    events = (course.place("01") / "events" / "rank0.jsonl").read_text()
    assert events.count('"run_start"') == 3
    assert f'"checkpoints_skipped":[{{"name":"{newest.parent.name}"' in events
    assert course.trial()["outcome"] == "ok"
    assert not (course.place("01") / "checkpoints").exists()
