"""What XLA has compiled for one training here, the next one finds."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(scope="session", autouse=True)
def compiled_once(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("JAX_COMPILATION_CACHE_DIR", os.fspath(tmp_path_factory.mktemp("compiled")))
        yield
