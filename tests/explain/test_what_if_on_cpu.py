"""What is advised to a program on a CPU, and what of a program its profile shows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders_step import Row, Span, profile_of
from builders_what_if import MS, gpu_step

from trainmark.explain.advice import AdviceEvidence, diagnose
from trainmark.explain.explained_trial import with_seen
from trainmark.explain.profile import HostKind
from trainmark.explain.profile_folder import Captured, CapturedRank
from trainmark.explain.what_if.changes import find, predict
from trainmark.explain.what_if.record import interval, published
from trainmark.explain.what_if.situation import StepPart, TrainingSettings

PYTORCH = TrainingSettings(framework="pytorch", precision="fp32")


def on_cpu(**more):
    return replace(gpu_step(settings=PYTORCH, **more), device="cpu", datasheet=None)


def line(name, situation):
    return find(name).how(situation).text


def test_nothing_of_a_gpu_is_predicted_or_advised_on_a_cpu():
    situation = on_cpu(idle={"launch": 30 * MS, "loader": 20 * MS}, gaps={"launch": 100})
    what_ifs = predict(situation)
    assert not {"graph", "no launch gaps", "compile", "channels last"} & {change.name for change in what_ifs}
    advice = diagnose(AdviceEvidence(situation, what_ifs))
    said = " ".join(f"{one.sentence} {one.how}" for one in advice)
    assert "Python between operators takes" in said
    assert "The training waits for the next batch" in said
    for word in ("device", "launch", "kernel", "graph", "pin_memory", "nvidia", "cuda"):
        assert word not in said


@pytest.mark.parametrize(
    ("cores", "ranks", "device", "workers"),
    [(2, 1, "cpu", 1), (1, 1, "cpu", 1), (4, 1, "cpu", 3), (64, 1, "cpu", 8), (16, 8, "cuda", 2)],
)
def test_a_loader_is_given_no_more_workers_than_cores(cores, ranks, device, workers):
    situation = replace(on_cpu(), device=device, cores=cores)
    situation = replace(situation, settings=replace(PYTORCH, world_size=ranks))
    text = line("free loader", situation)
    assert f"num_workers={workers}," in text
    assert ("pin_memory" in text) == (device == "cuda")


@pytest.mark.parametrize(
    ("seen", "text"),
    [
        ("Adam", "torch.optim.Adam(..., fused=True)"),
        ("sgd", "torch.optim.SGD(..., fused=True)"),
        ("LBFGS", "an optimiser that updates all parameters in one kernel"),
        (None, "an optimiser that updates all parameters in one kernel"),
    ],
)
def test_a_fused_optimiser_is_the_one_that_was_seen(seen, text):
    assert line("fused optimiser", gpu_step(settings=replace(PYTORCH, optimizer=seen))) == text


def test_autocast_names_the_device_at_hand():
    assert 'autocast("cpu"' in line("bf16", on_cpu())
    assert 'autocast("cuda"' in line("bf16", gpu_step(settings=PYTORCH))


def test_an_interval_from_another_kind_of_device_says_so():
    assert {entry.kind for entry in published()} == {"cuda"}
    assert interval("free loader", "cpu", published()).basis.endswith("on cuda: on cpu none was verified")


def captured(spans, rows):
    profile = profile_of(spans, [100], rows=rows)
    rank = CapturedRank(0, 1, "pytorch", "cuda", None, profile, None, (), (), {"facts": {"cores": 12}})
    return Captured((rank,))


def test_a_profile_shows_the_optimizer_the_compiler_and_the_cores():
    update = Row("Optimizer.step#Adam.step", 50, 60, HostKind.ANNOTATION)
    triton = [Span("triton_poi_fused_add_gelu_3", 10, 20)]
    plain = replace(gpu_step(settings=PYTORCH), settings=PYTORCH)
    seen = with_seen(plain, captured(triton, [update]))
    assert (seen.settings.optimizer, seen.settings.compiler, seen.cores) == ("Adam", "compile", 12)
    eager = with_seen(plain, captured([Span("gemm", 10, 20)], [update]))
    assert eager.settings.compiler is None


def test_a_program_that_is_compiled_is_not_advised_to_compile():
    normal = StepPart("normalisation", 30 * MS, 30 * MS, 300, bytes=4e10, floor=5 * MS, bound="memory")
    eager = gpu_step(settings=PYTORCH, normalisation=normal)
    assert "compile" in {change.name for change in predict(eager)}
    compiled = with_seen(eager, captured([Span("triton_red_fused_1", 10, 20)], []))
    assert "compile" not in {change.name for change in predict(compiled)}


def test_a_program_that_replays_graphs_is_not_advised_to_capture_or_compile():
    plain = gpu_step({"launch": 30 * MS}, {"launch": 400}, settings=PYTORCH)
    rows = [Row("cudaGraphLaunch", 5, 6, HostKind.RUNTIME)]
    graphed = with_seen(plain, captured([Span("triton_red_fused_1", 10, 20)], rows))
    advice = diagnose(AdviceEvidence(graphed, predict(graphed)))
    assert "graph" in {what_if.name for what_if in predict(plain)}
    assert "graph" not in {what_if.name for what_if in predict(graphed)}
    assert not [one.how for one in advice if "compile" in one.how]


def test_several_optimizers_leave_the_name_open():
    rows = [Row(f"Optimizer.step#{name}.step", 50, 60, HostKind.ANNOTATION) for name in ("Adam", "SGD")]
    assert with_seen(gpu_step(settings=PYTORCH), captured([], rows)).settings.optimizer is None
