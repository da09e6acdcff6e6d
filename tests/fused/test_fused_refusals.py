"""What the fused step does not do is refused in a sentence."""

from __future__ import annotations

import pytest

from trainmark.workloads.common.refusal import Refusal, check_machine
from trainmark.workloads.resnet50.shared import program

HOPPER = 9, 0


def check(*words, triton=True):
    opt = program.parse_options(["--engine", "fused", "--layout", "NHWC", *words], "program")
    capability = HOPPER if opt.device == "cuda" else None
    check_machine(program.SPEC.refusals, "pytorch", opt, capability, triton=triton, cxx=True)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--layout", "NCHW"), "keeps activations as NHWC; use layout: NHWC"),
        (("--compile",), "leave compile out"),
        (("--precision", "tf32", "--device", "cuda"), "multiplies in fp32, amp or bf16"),
        (("--recipe", "ngc-250"), "does no mixup"),
        (("--recipe", "mlperf", "--batch", "4096"), "updates by SGD"),
    ],
)
def test_what_it_does_not_do(words, sentence):
    with pytest.raises(Refusal, match=sentence):
        check(*words)


def test_on_a_cuda_device_it_needs_triton():
    check("--device", "cpu", triton=False)
    with pytest.raises(Refusal, match="install triton, or use engine: stock"):
        check("--device", "cuda", triton=False)


def test_it_is_pytorchs_alone():
    check()
    with pytest.raises(Refusal, match="use framework: pytorch"):
        opt = program.parse_options(["--engine", "fused"], "program")
        check_machine(program.SPEC.refusals, "jax", opt)
