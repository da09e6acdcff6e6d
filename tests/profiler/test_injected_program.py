"""`trainmark explain` on a program that no hook knows: CUDA's driver loads a library that records kernels."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from trainmark.base.errors import UserError
from trainmark.explain.profiled_trial import annotations_of, step_seconds, unprofiled, window_of

HERE = Path(__file__).parent
PATTERN = r"step (?P<step>\d+) done"
HANG_SECONDS = 300


def explain(folder: Path, *program: str, **variables: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "trainmark", "explain", "--name", "it", "--json"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    return subprocess.run(
        [*command, "--pattern", PATTERN, "--", sys.executable, *program],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
    )


@pytest.fixture(scope="module")
def variables(library, fake) -> dict[str, str]:
    return {"TRAINMARK_CUPTI": library, "TRAINMARK_CUPTI_LIBRARY": str(fake)}


@pytest.fixture(scope="module")
def explained(fake, variables, tmp_path_factory) -> tuple[dict, str]:
    program = str(HERE / "injected_training.py"), str(fake), "400"
    done = explain(tmp_path_factory.mktemp("run"), *program, **variables)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_the_steps_are_made_out_by_the_kernels_that_repeat(explained):
    explanation, _ = explained
    assert explanation["steps"] >= 20
    launches = {row["name"]: row["launches"] / explanation["steps"] for row in explanation["classes"]}
    assert launches["matrix product"] == 2 and launches["elementwise"] == 1


def test_the_step_is_held_against_those_that_the_program_tells_without_the_library(explained):
    explanation, _ = explained
    agreement = explanation["agreement"]
    assert agreement["measured"] >= 0.01
    assert agreement["profiled"] >= 0.01


def test_the_user_is_told_that_the_program_starts_again(explained):
    assert "started once more" in explained[1]


def test_a_program_that_uses_no_gpu_is_told_so_and_no_profile_is_left(variables, tmp_path):
    loop = "    time.sleep(0.01)\n    print('step', step, 'done', flush=True)\n"
    (tmp_path / "train.py").write_text(f"import time\nfor step in range(150):\n{loop}", encoding="utf-8")
    done = explain(tmp_path, "train.py", **variables)
    assert done.returncode == 2
    assert "no kernels of this program were recorded: it uses no GPU" in done.stderr
    assert not list(tmp_path.glob("runs/it/trials/*/01/profile"))
    assert not list(tmp_path.glob("runs/it/explain/.*"))


def test_what_cupti_refuses_is_told(fake, variables, tmp_path):
    program = str(HERE / "injected_training.py"), str(fake), "150"
    done = explain(tmp_path, *program, **variables, FAKE_CUPTI_REFUSES="1")
    assert done.returncode == 2
    assert "were recorded: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES." in done.stderr


def test_the_window_lies_in_the_middle_of_the_steps_after_the_warm_up():
    ends = {number: 100.0 + 0.1 * number for number in range(101)}
    window = window_of(ends, 90.0, 10, 5)
    assert window.seconds == pytest.approx(0.8)
    assert window.after == pytest.approx(10 + 5.5 - 0.4)


@pytest.mark.parametrize(
    "ends, sentence",
    [({}, "the steps of this program are not known"), ({0: 1.0, 1: 1.1, 2: 1.2}, "let it train longer")],
)
def test_what_cannot_be_recorded_is_one_sentence(ends, sentence):
    with pytest.raises(UserError, match=sentence):
        window_of(ends, 0.0, 0, 5)


def test_a_line_for_every_tenth_step_tells_tenths():
    assert step_seconds({0: 0.0, 10: 1.0, 30: 2.0}) == pytest.approx([0.1, 0.05])


def test_steps_beside_the_recording_are_without_its_begin_and_end():
    ends = {number: float(number) for number in range(20)}
    before, after = unprofiled(ends, 7.5, 12.5, 3)
    assert len(before) == 4 and len(after) == 4


def test_steps_by_the_hosts_clock_are_annotations_on_the_clock_of_the_records():
    annotations = annotations_of({0: 9.9, 1: 10.0, 2: 10.5, 3: 11.0}, 500, round(10.25e9), 7)
    assert [annotation.name for annotation in annotations] == ["trainmark_step#2", "trainmark_step#3"]
    assert [annotation.end for annotation in annotations] == [250_000_500, 750_000_500]


def test_a_cupy_program_is_explained_on_a_gpu(tmp_path):
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed here")
    if not cupy.cuda.is_available():
        pytest.skip("CuPy sees no CUDA device here")
    done = explain(tmp_path, str(HERE / "cupy_training.py"), "600")
    assert done.returncode == 0, done.stderr
    explanation = json.loads(done.stdout)
    assert explanation["agreement"]["refusal"] is None, explanation["agreement"]
    rows = {row["name"]: row for row in explanation["classes"]}
    assert rows["matrix product"]["launches"] / explanation["steps"] >= 5
    assert max(rows, key=lambda name: rows[name]["alone"]) == "matrix product"
