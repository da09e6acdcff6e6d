from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def beside_the_benchmarks(monkeypatch):
    """`benchmarks` is run from the checkout and never installed."""
    monkeypatch.syspath_prepend(ROOT)
