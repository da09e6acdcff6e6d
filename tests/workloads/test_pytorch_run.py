from __future__ import annotations

import json
import math
import shutil
from itertools import pairwise

import pytest
from pytorch_workload import (
    CPU,
    PROGRAM,
    asked,
    events_of_run,
    model,
    run,
    steps_in,
    stream_of,
    synthetic_batch,
    torch,
    workload,
)

import small_resnet
from trainmark.events import RunEnd, RunStart
from trainmark.workloads.common.refusal import REFUSED as REFUSED_CODE
from trainmark.workloads.common.training import SYNTHETIC_BATCHES
from trainmark.workloads.resnet50.shared import program, recipe


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A real run: float32, one batch that stays on the device."""
    return events_of_run(tmp_path_factory.mktemp("plain"), "--steps", "4")


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Another: bfloat16, channels last, batches from the host; small, as most CPUs compute no bfloat16."""
    folder = tmp_path_factory.mktemp("mixed")
    code = small_resnet.copy_code(small_resnet.THREE_BLOCKS, tmp_path_factory.mktemp("small") / "code")
    arguments = ("--precision", "bf16", "--layout", "NHWC", "--data", "synthetic-host")
    return events_of_run(folder, *arguments, "--steps", "4", PYTHONPATH=str(code))


def test_a_run_says_what_it_is_and_then_takes_the_steps_it_was_asked_for(plain):
    start = plain[0]
    assert isinstance(start, RunStart)
    assert (start.unit, start.world_size) == ("images", 1)
    assert start.facts["framework_version"] == torch.__version__
    assert start.facts["flops_per_sample"] == recipe.flops_per_image(32)
    assert [step.step for step in steps_in(plain)] == [0, 1, 2, 3]


def test_the_times_of_the_steps_increase_from_the_start_to_the_end(plain):
    times = [event.mono for event in plain]
    assert all(before < after for before, after in pairwise(times))


@pytest.mark.parametrize("name", ["plain", "mixed"])
def test_every_step_has_its_samples_loss_memory_and_wait(name, request):
    for step in steps_in(request.getfixturevalue(name)):
        assert step.samples == 2
        assert math.isfinite(step.loss)
        assert step.memory > 50e6
        assert step.data_wait >= 0


def test_a_run_whose_kernels_are_plain_pytorch_says_so_at_its_end(plain, tmp_path):
    fused = events_of_run(tmp_path, "--engine", "fused", "--layout", "NHWC", "--steps", "2")
    (fallback,) = fused[-1].facts["fallbacks"]
    assert "every kernel is plain PyTorch" in fallback
    assert "fallbacks" not in plain[-1].facts


def test_every_step_tells_the_rate_of_the_recipe(plain):
    assert [step.lr for step in steps_in(plain)] == [recipe.STANDARD.learning_rate(n, 2) for n in range(4)]


def test_a_run_ends_with_the_peak_that_a_matrix_product_reached(plain):
    assert isinstance(plain[-1], RunEnd)
    assert plain[-1].facts["peak_flops"] > 1e8


def test_a_resident_batch_is_the_same_in_every_step():
    stream = stream_of(asked())
    (images, labels), (again, labels_again) = next(stream), next(stream)
    assert images is again
    assert labels is labels_again


def test_host_batches_come_in_turn_and_then_again():
    stream = stream_of(asked("--data", "synthetic-host"))
    images = [next(stream)[0] for _ in range(2 * SYNTHETIC_BATCHES)]
    first, again = images[:SYNTHETIC_BATCHES], images[SYNTHETIC_BATCHES:]
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(torch.equal(first[0], other) for other in first[1:])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the compiler, about itself
def test_a_compiled_step_gives_the_loss_of_the_plain_one(tmp_path, monkeypatch):
    """The compiler takes minutes for fifty layers on two cores, and half a minute for two."""
    if not (shutil.which("c++") or shutil.which("g++")):
        pytest.skip("torch.compile on the CPU needs a C++ compiler")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(workload, "ResNet50", lambda: torch.nn.Sequential(*flat_classifier()))
    opt = asked("--compile")
    compiled = workload.Step(opt, workload.build_model(opt, CPU), CPU)
    plain = workload.Step(asked(), workload.build_model(asked(), CPU), CPU)
    batch = synthetic_batch(opt, CPU)
    assert hasattr(compiled.model, "_orig_mod")
    torch.testing.assert_close(compiled(*batch), plain(*batch), rtol=1e-4, atol=1e-4)


def flat_classifier():
    return model.conv(3, 4, 3, 4), torch.nn.Flatten(), torch.nn.Linear(4 * 8 * 8, recipe.CLASSES)


REFUSED = {
    ("--precision", "tf32"): "tf32",
    ("--cuda-graph",): "CUDA graph",
    ("--device", "cuda"): "no CUDA device",
}


@pytest.mark.parametrize("arguments", REFUSED, ids=" ".join)
def test_what_a_cpu_cannot_do_is_refused_in_one_sentence_before_anything_is_built(
    arguments, monkeypatch, capsys
):
    if "cuda" in arguments and torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    built = []
    monkeypatch.setattr("sys.argv", [PROGRAM, *arguments])
    with pytest.raises(SystemExit) as ended:
        program.main(workload.framework, built.append)
    assert ended.value.code == REFUSED_CODE == 3
    (sentence,) = capsys.readouterr().err.splitlines()
    assert REFUSED[arguments] in sentence
    assert sentence.endswith(".")
    assert not built


def test_the_program_itself_refuses_and_leaves_no_events(tmp_path):
    done = run("--precision", "tf32", TRAINMARK_EVENTS=str(tmp_path))
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("refused: tf32")
    assert not list(tmp_path.iterdir())


def test_check_answers_each_question_on_a_line_of_its_own():
    questions = [["--precision", "bf16"], ["--precision", "tf32"], ["--precision", "fp32"], ["--cuda-graph"]]
    asked_lines = "".join(json.dumps({"arguments": q, "world_size": 1}) + "\n" for q in questions)
    done = run("--check", stdin=asked_lines)
    facts, *answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert facts["framework_version"] == torch.__version__
    assert [answer is None for answer in answers] == [True, False, True, False]


@pytest.mark.parametrize("scale", ["0", "-128", "nan", "inf", "much"])
def test_a_loss_scale_that_is_no_positive_number_is_bad_usage(scale, capsys):
    with pytest.raises(SystemExit) as ended:
        asked("--precision", "amp", f"--loss-scale={scale}")
    assert ended.value.code == 2
    assert "--loss-scale" in capsys.readouterr().err
