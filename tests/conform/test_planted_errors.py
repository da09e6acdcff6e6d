"""Each of the errors that no throughput figure shows must cost a framework its mark."""

from __future__ import annotations

import sys

import pytest
from planted_errors import PLANTED

from trainmark.runner import conforming

pytest.importorskip("torch", reason="PyTorch is not installed; trainmark frameworks install pytorch")


def checked(code, ranks, tmp_path):
    program = conforming.program("pytorch", sys.executable, "NCHW", "cpu")
    return conforming.checked(program, ranks, "NCHW", stop_asked=lambda: False, code=code)


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_error_is_found(name, tmp_path):
    planted = PLANTED[name]
    check = checked(planted.plant(tmp_path / "code"), planted.ranks, tmp_path)
    assert check.failed is None
    assert check.differs, name
