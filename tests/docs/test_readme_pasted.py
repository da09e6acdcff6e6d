"""The first page, pasted from top to bottom into one shell in a fresh clone."""

import os
import shutil
import site
import subprocess
import sys

import pytest
from doc_pages import ROOT, blocks, page

HANG_SECONDS = 1500  # many times what it takes


@pytest.fixture
def clone(tmp_path):
    """What git would bring; an environment is begun in it that finds what is installed here already."""
    if not (ROOT / ".git").exists() or not shutil.which("git") or not shutil.which("make"):
        pytest.skip("git, make and a checkout are needed for a fresh clone")
    listed = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split("\0")
    folder = tmp_path / "trainmark"
    for name in filter(None, files):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    subprocess.run([sys.executable, "-m", "venv", str(folder / ".venv")], check=True)
    (packages,) = (folder / ".venv" / "lib").glob("python*/site-packages")
    (packages / "installed_here.pth").write_text("\n".join(site.getsitepackages()))
    (folder / ".venv" / ".python").touch()
    return folder


def test_every_line_of_the_readme_works_in_one_shell_from_top_to_bottom(clone, tmp_path):
    pytest.importorskip("torch", reason="the page measures a PyTorch program")
    lines = "".join(blocks(page("README.md"), "shell")).splitlines()
    told = tmp_path / "told"
    # As a terminal would: a line that fails does not end the shell.
    script = "".join(f'{line}\necho "$? $(printf %q {line!r})" >> {told}\n' for line in lines)
    environment = {**os.environ, "HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    environment.pop("DISPLAY", None)
    ran = subprocess.run(
        ["bash"],
        input=script,
        cwd=clone,
        env=environment,
        text=True,
        capture_output=True,
        timeout=HANG_SECONDS,
    )
    failed = [line for line in told.read_text().splitlines() if not line.startswith("0 ")]
    assert not failed, f"{failed}\n{ran.stdout[-3000:]}\n{ran.stderr[-3000:]}"
    assert len(told.read_text().splitlines()) == len(lines) > 8
    (run,) = (clone / "runs").glob("train-*")
    assert (run / "report.html").is_file() and (run / "explain").is_dir()
    assert "train.trainmark: verified" in ran.stdout
