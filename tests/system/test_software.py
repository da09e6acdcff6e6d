from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

from trainmark.machine.environment import read_git
from trainmark.machine.software import FRAMEWORKS, InterpreterPackages, read_interpreter, read_software


def test_another_interpreter_tells_the_same_as_this_one_when_it_is_the_same():
    assert read_interpreter(Path(sys.executable)) == read_interpreter()


def test_an_interpreter_that_is_none_gives_none():
    assert read_interpreter(Path("/bin/false")) is None


def test_no_framework_is_imported_to_learn_its_version():
    script = (
        "import sys; from trainmark.machine.software import *; s = read_software(read_interpreter());"
        "print([m for m in ('torch', 'numpy', 'tensorflow') if m in sys.modules], s.packages['numpy'])"
    )
    printed = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    assert printed.strip() == f"[] {metadata.version('numpy')}"


def test_every_framework_is_named_also_those_that_are_absent():
    software = read_software(
        InterpreterPackages("3.7.9", "CPython", {"mxnet-cu102": "1.6.0", "torch": "1.5.0"}), {}
    )
    assert software.frameworks == dict.fromkeys(FRAMEWORKS) | {"mxnet": "1.6.0", "pytorch": "1.5.0"}


def test_distribution_names_are_known_in_every_spelling(tmp_path, monkeypatch):
    folder = tmp_path / "Nvidia_DALI.cuda120-1.2.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: Nvidia_DALI.cuda120\nVersion: 1.2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert read_software(read_interpreter(), {}).packages["nvidia-dali-cuda120"] == "1.2"


def test_only_variables_that_tune_speed_are_kept_and_no_secret_among_them():
    variables = {
        "NCCL_IB_DISABLE": "1",
        "NVIDIA_TF32_OVERRIDE": "0",
        "OMP_NUM_THREADS": "8",
        "HOME": "/home/ada",
        "TF_VAR_password": "a",
        "TORCH_HUB_TOKEN": "b",
    }
    tuning_variables = read_software(None, variables).variables
    assert tuning_variables == {"NCCL_IB_DISABLE": "1", "NVIDIA_TF32_OVERRIDE": "0", "OMP_NUM_THREADS": "8"}


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


def test_a_changed_file_makes_the_commit_dirty_and_an_untracked_one_does_not(tmp_path):
    git(tmp_path, "init", "-b", "main")
    (tmp_path / "train.py").write_text("1")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "one")
    (tmp_path / "log.txt").write_text("noise")
    clean = read_git(tmp_path)
    (tmp_path / "train.py").write_text("2")
    changed = read_git(tmp_path)
    assert clean is not None and changed is not None
    assert (clean.branch, len(clean.commit)) == ("main", 40)
    assert (clean.dirty, changed.dirty) == (False, True)


def test_two_changes_from_the_same_commit_have_different_digests(tmp_path):
    git(tmp_path, "init", "-b", "main")
    (tmp_path / "train.py").write_text("1")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "one")
    digests = [read_git(tmp_path).changes]
    for text in ("2", "3"):
        (tmp_path / "train.py").write_text(text)
        digests.append(read_git(tmp_path).changes)
    assert digests[0] is None and len(set(digests)) == 3


def test_a_folder_outside_of_git_has_no_commit(tmp_path):
    assert read_git(tmp_path) is None
