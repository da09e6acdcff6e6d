"""What a framework cannot do is refused by a row of the table, which needs no framework to be read."""

from __future__ import annotations

import pytest

from trainmark.workloads import registry
from trainmark.workloads.common.refusal import Refusal, check_machine
from trainmark.workloads.resnet50.shared import program

HOPPER, VOLTA, PASCAL = (9, 0), (7, 0), (6, 1)
ALL = {"triton": True, "cxx": True, "cinn": True, "avx512_bf16": True, "mpi_fault": None}
LAYOUT = {"tensorflow": "NHWC"}  # on the CPU; all others train in NCHW there


def refused(framework: str, words: str, capability=None, ranks: int = 1, **machine) -> str | None:
    opt = program.settle_options(program.parse_options(["--batch", "4096", *words.split()], "program"), ranks)
    try:
        check_machine(program.SPEC.refusals, framework, opt, capability, **(ALL | machine))
    except Refusal as refusal:
        return str(refusal)
    return None


@pytest.mark.parametrize("framework", registry.find("resnet50").frameworks)
def test_what_every_framework_can_do_is_refused_by_none(framework):
    assert refused(framework, f"--layout {LAYOUT.get(framework, 'NCHW')}", ranks=8) is None


@pytest.mark.parametrize("framework", registry.find("resnet50").frameworks)
def test_a_gpu_that_is_not_there_is_refused_first_in_a_sentence_that_names_what_does(framework):
    sentence = refused(framework, "--device cuda --precision tf32 --compile")
    assert sentence and sentence.endswith(".") and "--device cpu" in sentence
    assert framework in sentence.lower()


REFUSED = {
    ("jax", "--compile"): "JAX compiles the whole step in any case",
    ("jax", "--loader dali-cpu"): "JAX has no loader of its own",
    ("mindspore", "--precision bf16"): "no batch norm in bfloat16",
    ("mindspore", "--precision amp"): "computes in float32 what is given as float16",
    ("mxnet", "--layout NHWC"): "take only NCHW",
    ("mxnet", "--compile reduce-overhead"): "use compile: true",
    ("oneflow", "--precision amp"): "mixes precisions on GPUs only",
    ("paddle", "--precision amp"): "leaves everything in float32",
    ("paddle", "--loader dali-gpu"): "use loader host or own",
    ("pytorch", "--cuda-graph"): "needs a CUDA device",
    ("pytorch", "--compile reduce-overhead"): "use it on a CUDA device",
    ("pytorch", "--epochs 2"): "use data: images",
    ("tensorflow", "--layout NCHW"): "use layout NHWC",
    ("tensorflow", "--precision tf32"): "compute capability 8.0",
}


@pytest.mark.parametrize(("framework", "words"), REFUSED)
def test_what_it_cannot_do_on_the_cpu(framework, words):
    assert REFUSED[framework, words] in str(refused(framework, words))


@pytest.mark.parametrize(
    ("framework", "words", "too_old", "sentence"),
    [
        ("pytorch", "--precision tf32", VOLTA, "tf32 needs"),
        ("pytorch", "--precision bf16", VOLTA, "use amp"),
        ("pytorch", "--compile", PASCAL, "capability 7.0"),
        ("paddle", "--precision amp", PASCAL, "capability 7.0"),
        ("tensorflow", "--precision amp --layout NHWC", PASCAL, "use layout NCHW"),
    ],
)
def test_what_needs_a_later_gpu(framework, words, too_old, sentence):
    assert sentence in str(refused(framework, f"{words} --device cuda", too_old))
    assert refused(framework, f"{words} --device cuda", HOPPER) is None


@pytest.mark.parametrize(
    ("framework", "words", "capability", "lacking", "sentence"),
    [
        ("pytorch", "--compile", None, {"cxx": False}, "install g++"),
        ("pytorch", "--compile --device cuda", HOPPER, {"triton": False}, "needs Triton"),
        ("paddle", "--compile --device cuda", HOPPER, {"cinn": False}, "CINN"),
        ("mxnet", "--precision bf16", None, {"avx512_bf16": False}, "AVX512_BF16"),
        (
            "mxnet",
            "",
            None,
            {"mpi_fault": "this is Open MPI 5.0"},
            "MPICH 4, and this is Open MPI 5.0; install",
        ),
    ],
)
def test_what_the_machine_lacks(framework, words, capability, lacking, sentence):
    assert sentence in str(refused(framework, words, capability, 2, **lacking))
    assert refused(framework, words, capability, 2) is None


def test_a_cuda_graph_of_the_whole_step_is_for_one_rank():
    assert refused("pytorch", "--cuda-graph --device cuda", HOPPER) is None
    assert "built for one rank" in str(refused("pytorch", "--cuda-graph --device cuda", HOPPER, ranks=2))
