"""Kernels run in Triton's interpreter here, and their twins beside them."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest

# Read when Triton is imported and when a kernel is defined, which is here, before any test has begun.
os.environ["TRITON_INTERPRET"] = "1"
try:
    interpreted = None
    if find_spec("triton") and find_spec("torch"):
        from trainmark.workloads.resnet50.fused import kernels as interpreted
finally:
    del os.environ["TRITON_INTERPRET"]


@pytest.fixture
def kernels(monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")  # and again when it is called
    if interpreted is None:
        pytest.skip("Triton or PyTorch is not installed; pip install -r requirements/test.txt")
    return interpreted
