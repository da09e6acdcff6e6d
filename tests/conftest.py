import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings

# The machines that run the tests are noisy: how long an example takes says nothing about the code. In CI
# the examples are the same each time; elsewhere they go on searching.
settings.register_profile("unhurried", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("unhurried")

pytest_plugins = ["tests.tiers"]

HOME = os.environ.get("TRAINMARK_HOME")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trainmark-tests"


@pytest.fixture(autouse=True, scope="session")
def no_environments(tmp_path_factory):
    """The tests see no environment that happens to be installed here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRAINMARK_HOME", str(tmp_path_factory.mktemp("home")))
        patch.delenv("TRAINMARK_LOCKS", raising=False)
        patch.delenv("COLUMNS", raising=False)  # pytest-xdist sets it, and tables would fit that width
        yield


@pytest.fixture(scope="session")
def compiled_once():
    """What XLA has compiled for one training, the next one finds, also that of the next run of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_COMPILATION_CACHE_DIR", str(CACHE / "xla"))
        patch.setenv("JAX_COMPILATION_CACHE_MAX_SIZE", str(2**30))
        yield


@pytest.fixture(scope="module")
def installed_environments(no_environments, compiled_once):
    """For the tests of one file: the environments that `trainmark frameworks install` has made here."""
    with pytest.MonkeyPatch.context() as patch:
        if HOME:
            patch.setenv("TRAINMARK_HOME", HOME)
        else:
            patch.delenv("TRAINMARK_HOME")
        yield


@dataclass(frozen=True)
class CommandResult:
    code: int
    out: str
    err: str


@pytest.fixture
def trainmark(monkeypatch, capsys, tmp_path) -> Callable[..., CommandResult]:
    """Calls the command in an empty folder, through the entry point that the script has."""
    from trainmark.cli.main import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRAINMARK_RUNS", raising=False)
    monkeypatch.setenv("LANGUAGE", "en")

    def call(*words: str) -> CommandResult:
        monkeypatch.setattr(sys, "argv", ["trainmark", *words])
        with pytest.raises(SystemExit) as left:
            main()
        captured = capsys.readouterr()
        return CommandResult(left.value.code, captured.out, captured.err)

    return call
