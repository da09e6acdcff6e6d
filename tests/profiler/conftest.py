"""The library in C that records with CUPTI, compiled once, and a CUPTI that plays to it without a GPU."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from trainmark.inside.profiler.cupti import build


@pytest.fixture(scope="session")
def cupti_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cupti")


@pytest.fixture(scope="session")
def library(cupti_folder):
    built = build.build(str(cupti_folder / "cache"))
    if built.path is None:
        pytest.skip(built.reason)
    return built.path


@pytest.fixture(scope="session")
def fake(cupti_folder, library):
    path = cupti_folder / "libfake_cupti.so"
    includes = [word for include in build.include_folders() for word in ("-isystem", include)]
    command = [build._compiler(), "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", *includes]
    source = Path(__file__).with_name("fake_cupti.c")
    subprocess.run([*command, str(source), "-o", str(path)], check=True)
    return path
