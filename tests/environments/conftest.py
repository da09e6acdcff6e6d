import os
import shutil
import subprocess

import pytest
from toy_frameworks import Toy

from trainmark.machine.frameworks import locks


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Nothing installed yet; this process sees the same home and locks as the commands that it starts."""
    made = Toy(tmp_path)
    made.lock()
    made.release()
    for name in ("TRAINMARK_HOME", "TRAINMARK_LOCKS"):
        monkeypatch.setenv(name, made.variables[name])
    yield made
    for process in made.started:
        process.kill()
        process.communicate()


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """One real install, made once, with a variable set that would lead pip astray."""
    made = Toy(tmp_path_factory.mktemp("whole"))
    made.lock()
    made.release()
    made.done = made.call("install", "toy", PIP_TARGET=str(made.home.parent / "astray"))
    assert made.done.code == 0, made.done.errors
    return made


@pytest.fixture
def installed(toy, whole):
    """A copy of that install, to be damaged."""
    shutil.copytree(whole.home, toy.home, symlinks=True)
    return toy


@pytest.fixture
def shipped(monkeypatch):
    """The locks of the package and no others."""
    monkeypatch.delenv("TRAINMARK_LOCKS", raising=False)
    return locks.FOLDER


@pytest.fixture(params=["8m", "40m"])
def small_disk(toy, request):
    """The environments lie on a disk that is full before, or just after, pip is there."""
    toy.home.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={request.param}", "tmpfs", str(toy.home)]
    try:
        subprocess.run(mount, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a small disk cannot be mounted here: {getattr(error, 'stderr', error)}")
    yield toy
    subprocess.run(["umount", "-l", str(toy.home)], check=True)


@pytest.fixture(autouse=True)
def no_python_path(monkeypatch):
    if "PYTHONPATH" in os.environ:
        monkeypatch.delenv("PYTHONPATH")
