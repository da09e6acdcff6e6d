"""A path that a user names may be a device, a FIFO or gigabytes: it is refused at once, with a sentence."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from trainmark.audit.protocols.protocol import lines_of
from trainmark.audit.report import read_report
from trainmark.base.streams import SourceRefusal
from trainmark.data.imagenet_labels import read_labels
from trainmark.launch.hosts import from_hostfile, from_inventory
from trainmark.logs.format_file import custom_format
from trainmark.logs.input import sources
from trainmark.logs.ledger import load
from trainmark.suite.load import load as load_suite
from trainmark.workloads.resnet50.shared import recipe


def first_source(path: Path) -> None:
    (answer,) = sources([str(path)])
    assert isinstance(answer, SourceRefusal)
    raise ValueError(answer.sentence)


READERS = {
    "suite": lambda path: load_suite(str(path)),
    "hostfile": from_hostfile,
    "inventory": from_inventory,
    "ledger": load,
    "format": custom_format,
    "labels": read_labels,
    "report": read_report,
    "protocol": lines_of,
    "recipe": lambda path: recipe.read(str(path)),
    "log": first_source,
}
GIGABYTE = 1 << 30


@pytest.fixture
def special(tmp_path):
    path = tmp_path / "x.json"
    yield path
    signal.alarm(0)


def give_up(signum, frame):
    raise TimeoutError("it is still waiting")


def refused(reader: str, path: Path) -> str:
    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(30)
    # Refused by the memory of the process, should all of it be read after all.
    limits = resource.getrlimit(resource.RLIMIT_AS)
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + 2 * GIGABYTE, limits[1]))
    try:
        with pytest.raises(ValueError) as error:
            READERS[reader](path)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
    return str(error.value)


@pytest.mark.parametrize("reader", READERS)
def test_a_device_without_end_is_refused(special, reader):
    special.symlink_to("/dev/zero")
    assert "regular file" in refused(reader, special)


@pytest.mark.parametrize("reader", READERS)
def test_a_fifo_without_a_writer_is_not_waited_for(special, reader):
    os.mkfifo(special)
    message = refused(reader, special)
    assert "no writer" in message or "no regular file" in message


@pytest.mark.parametrize("reader", sorted(READERS.keys() - {"log"}))
def test_a_file_that_is_too_large_is_refused_by_what_is_read(special, reader):
    with special.open("wb") as file:
        file.truncate(8 * GIGABYTE)
    assert "larger than" in refused(reader, special)


def test_a_pipe_with_a_writer_is_read_as_a_file():
    program = (
        "import sys; from pathlib import Path; from trainmark.launch.hosts import from_hostfile;"
        "print(from_hostfile(Path(sys.argv[1])))"
    )
    command = f'{sys.executable} -c "{program}" <(sleep 0.2; echo node7 slots=2)'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert "node7" in done.stdout
