"""One measured run and its packed file, made once; tests that change them take copies."""

from __future__ import annotations

from pathlib import Path

import pytest
from measured_runs import measured_run

from trainmark.store.archive import PackedRun, pack
from trainmark.store.run import RunFolder


@pytest.fixture(scope="session")
def run(tmp_path_factory) -> RunFolder:
    return measured_run(tmp_path_factory.mktemp("measured"))


@pytest.fixture(scope="session")
def packed(run, tmp_path_factory) -> PackedRun:
    return pack(run, tmp_path_factory.mktemp("packed") / "measured.trainmark")


@pytest.fixture(scope="session")
def file(packed) -> Path:
    return packed.path
