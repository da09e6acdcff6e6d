"""Kernels run on a GPU where there is one, else in Triton's interpreter; their twins run beside them."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest


def imported():
    """The kernels, or None where they cannot be had; and whether they are interpreted."""
    if not (find_spec("triton") and find_spec("torch")):
        return None, False
    import torch

    interpreted = not torch.cuda.is_available()
    if interpreted:
        os.environ["TRITON_INTERPRET"] = "1"
    try:
        from trainmark.workloads.resnet50.fused import triton_ops as kernels
    finally:
        os.environ.pop("TRITON_INTERPRET", None)
    return kernels, interpreted


# The interpreter is chosen when Triton is imported and a kernel defined: here, before any test begins.
KERNELS, INTERPRETED = imported()


@pytest.fixture
def kernels(monkeypatch):
    if KERNELS is None:
        pytest.skip("Triton or PyTorch is not installed; pip install -r requirements/test.txt")
    import torch

    if INTERPRETED:
        monkeypatch.setenv("TRITON_INTERPRET", "1")  # asked for again when a kernel is called
    else:
        torch.set_default_device("cuda")
    yield KERNELS
    torch.set_default_device(None)
