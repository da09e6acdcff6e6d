"""Each of the errors that no throughput figure shows must cost a framework its mark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest
from planted_errors import NO_ERROR, PLANTED

import small_resnet
from trainmark.runner import conformance
from trainmark.workloads import registry
from trainmark.workloads.resnet50.shared.reference import compare

RESNET50 = registry.find("resnet50")
NCHW = conformance.variant_of(RESNET50, "NCHW")
TRAININGS = Path(__file__).with_name("forked_trainings.py")

pytest.importorskip("torch", reason="PyTorch is not installed; trainmark frameworks install pytorch")


@pytest.fixture(scope="module", autouse=True)
def small_network():
    """The reference of the network that the planted copies train, computed here."""
    with pytest.MonkeyPatch.context() as patch:
        small_resnet.build_here(small_resnet.THREE_BLOCKS, patch)
        yield


def checked(code, ranks):
    program = conformance.program(RESNET50, "pytorch", sys.executable, NCHW, "cpu")
    return conformance.checked(RESNET50, program, ranks, NCHW, stop_asked=lambda: False, code=code)


@pytest.fixture(scope="module")
def shown_alone(tmp_path_factory):
    """What each error that one rank is enough for shows of itself, by its name."""
    folder = tmp_path_factory.mktemp("alone")
    alone = {name: planted for name, planted in PLANTED.items() if planted.ranks == 1}
    pairs = [
        (planted.plant(folder / f"code{n}"), folder / f"{n}.json") for n, planted in enumerate(alone.values())
    ]
    _, _, _, _, *options = conformance.program(RESNET50, "pytorch", sys.executable, NCHW, "cpu")
    subprocess.run(
        [sys.executable, TRAININGS, *chain(*pairs), "--", *options],
        env={**os.environ, "OMP_NUM_THREADS": "1"}, check=True,
    )  # fmt: skip
    return {name: json.loads(shown.read_bytes()) for name, (_, shown) in zip(alone, pairs, strict=True)}


@pytest.mark.parametrize("ranks", [1, 2])
def test_without_an_error_the_small_network_conforms(ranks, tmp_path):
    check = checked(NO_ERROR.plant(tmp_path / "code"), ranks)
    assert check.passed, check


@pytest.mark.parametrize("name", [name for name, planted in PLANTED.items() if planted.ranks == 1])
def test_a_planted_error_is_found(name, shown_alone):
    assert compare([shown_alone[name]]).differs


@pytest.mark.parametrize("name", [name for name, planted in PLANTED.items() if planted.ranks == 2])
def test_an_error_that_takes_two_ranks_is_found(name, tmp_path):
    check = checked(PLANTED[name].plant(tmp_path / "code"), 2)
    assert check.failed is None
    assert check.differs
