"""What thousands of ranks print is kept whole, with few files open at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainmark.launch.job import Job
from trainmark.launch.session import OPEN_LOGS, RankFiles, make_folders

RANKS = 3 * OPEN_LOGS


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture
def job(tmp_path) -> Job:
    make_folders(tmp_path)
    return Job(("true",), {}, tmp_path, tmp_path, nodes=RANKS, ranks_per_node=1)


def test_logs_of_many_ranks_are_whole_though_few_are_open(job):
    files = RankFiles(job, ["a-long-secret"])
    before = open_files()
    most = 0
    for turn in range(3):
        for rank in range(RANKS):
            # The end of one chunk may be the beginning of a secret, also across a closed file.
            files.add_output(rank, b"turn %d a-long-" % turn, float(turn))
        most = max(most, open_files() - before)
    files.close()
    assert most <= 2 * OPEN_LOGS
    assert {job.log(rank).read_bytes() for rank in range(RANKS)} == {
        b"turn 0 a-long-turn 1 a-long-turn 2 a-long-"
    }
    assert len(job.log(7).with_suffix(".arrivals").read_text().splitlines()) == 4
    assert files.trouble is None


def test_what_cannot_be_kept_is_the_trouble_of_the_trial(job):
    (job.folder / "logs").rmdir()
    files = RankFiles(job, ())
    files.add_output(0, b"x", 0.0)
    files.close()
    assert isinstance(files.trouble, FileNotFoundError)
