"""What the fused step does not do is refused in a sentence."""

from __future__ import annotations

import importlib.util

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed; trainmark frameworks install pytorch")

from trainmark.workloads.resnet50.fused.step import Step
from trainmark.workloads.resnet50.shared import options


def asked(*words):
    return options.parse(["--engine", "fused", "--layout", "NHWC", *words], "program")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--layout", "NCHW"), "keeps activations as NHWC; use layout: NHWC"),
        (("--compile",), "leave compile out"),
        (("--precision", "tf32"), "multiplies in fp32, amp or bf16"),
        (("--recipe", "ngc-250"), "mixes no images"),
        (("--recipe", "mlperf", "--batch", "4096"), "updates by SGD"),
    ],
)
def test_what_it_does_not_do(words, sentence):
    with pytest.raises(options.Refusal, match=sentence):
        Step.check(asked(*words))


def test_on_a_cuda_device_it_needs_triton(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "triton" else object())
    Step.check(asked("--device", "cpu"))
    with pytest.raises(options.Refusal, match="install triton, or use engine: stock"):
        Step.check(asked("--device", "cuda"))


def test_it_is_pytorchs_alone():
    Step.check(asked())
    with pytest.raises(options.Refusal, match="use framework: pytorch"):
        options.check_asked(asked(), "jax")
