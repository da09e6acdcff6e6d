"""What is read off kernel names where a user's program says nothing of its precision and layout."""

import pytest

from trainmark.explain.explanation import (
    Agreement,
    ClassTime,
    ExplainedSubject,
    Explanation,
    IdleTime,
    Kernel,
    MeasuredPeaks,
    Memory,
    MemoryPart,
    Overlap,
)
from trainmark.explain.what_if.situation import (
    DatasheetPeaks,
    Situation,
    TrainingSettings,
    is_layout_copy,
    situation_of,
)


@pytest.mark.parametrize("name", ["void cudnn::ops::nchwToNhwcKernel<__half>", "nhwcToNchwKernel"])
def test_cudnns_changes_of_layout_are_known_by_name(name):
    assert is_layout_copy(name)
    assert not is_layout_copy("vectorized_elementwise_kernel")


def test_an_explained_step_becomes_parts_that_add_up_to_the_step_timed_without_the_profiler():
    explanation = Explanation(
        subject=ExplainedSubject("train.py"),
        steps=4,
        total=400,
        agreement=Agreement(profiled=1e-7, measured=0.98e-7),
        classes=(
            ClassTime("convolution", 200, 240, 40, kernels=(Kernel("nchwToNhwcKernel", 80, 8),)),
            ClassTime("matrix product", 60, 100, 8, kernels=(Kernel("ampere_sgemm_128x64_nn", 60, 8),)),
        ),
        overlaps=(Overlap(("convolution", "matrix product"), 40),),
        idle=(IdleTime("launch", 100, 12),),
        memory=Memory(100, None, (MemoryPart("weights", 30), MemoryPart("activations", 70))),
    )
    situation = situation_of(explanation, TrainingSettings(), "cuda")
    parts = sum(part.alone for part in situation.parts)
    assert parts + situation.overlap + sum(situation.idle.values()) == pytest.approx(situation.step)
    assert situation.parts[0].layout_copies == pytest.approx(80 / 400 * situation.step)
    assert (situation.launches, situation.gaps["launch"]) == (12, 3)
    assert situation.settings.precision == "fp32"
    assert (situation.memory, situation.fixed_memory) == (100, 30)


def test_a_peak_that_was_not_measured_follows_the_datasheets_ratio():
    sheet = DatasheetPeaks("H200 SXM", {"tf32": 494.5e12, "bf16": 989e12, "fp16": 989e12})
    situation = Situation(
        0.1, "cuda", settings=TrainingSettings(precision="tf32"), peaks=MeasuredPeaks(400e12), datasheet=sheet
    )
    assert situation.product_peak("tf32") == 400e12
    assert situation.product_peak("amp") == situation.product_peak("bf16") == 800e12
    assert situation.product_peak("fp8") is None
