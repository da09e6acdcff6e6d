import os
import signal
import subprocess

import pytest
from trainmark_run import TrainmarkRun


@pytest.fixture
def trainmark(tmp_path):
    run = TrainmarkRun(tmp_path)
    yield run
    for process in run.started:
        process.kill()
        process.communicate()
    for pid in run.left_running():
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def small_disk(trainmark):
    """The runs lie on a disk of 32 MiB."""
    trainmark.runs.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(trainmark.runs)]
    try:
        subprocess.run(mount, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a small disk cannot be mounted here: {getattr(error, 'stderr', error)}")
    yield trainmark.runs
    subprocess.run(["umount", "-l", str(trainmark.runs)], check=True)
