"""The locks in the package: every package by one exact version, for each framework and platform."""

import re

import pytest
from packaging.requirements import Requirement

from trainmark.base.errors import UserError
from trainmark.machine.frameworks.locks import FOLDER, LINK, read

LOCKS = sorted(FOLDER.glob("*.txt"))
PLATFORMS = ("linux-x86_64", "linux-aarch64")


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.stem)
def test_a_lock_pins_everything_to_one_version(path):
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    assert all(
        re.fullmatch(r"[a-z0-9.-]+==[\w.]+(; python_version [<>=]+ \"3\.\d+\")?", line) for line in lines
    )
    assert all(Requirement(line) for line in lines)


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.stem)
def test_a_lock_says_what_it_needs_or_why_there_is_none(path):
    lock = read(path)
    assert lock.unavailable or (lock.version and lock.megabytes > 100 and lock.lowest >= 10)
    assert len(lock.links) == sum(bool(LINK.fullmatch(line)) for line in path.read_text().splitlines())


@pytest.mark.parametrize("name", sorted({path.name.partition(".")[0] for path in LOCKS}))
def test_every_framework_has_a_word_for_each_platform(name):
    assert all(
        (FOLDER / f"{name}.{platform}.txt").exists() or (FOLDER / f"{name}.txt").exists()
        for platform in PLATFORMS
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("# python: new\ntoy==1\n", "write it as `# python: 3.11 - 3.13`"),
        ("# size: big\ntoy==1\n", "write it as `# size: 650 MB`"),
        ("other==1\n", "no line pins 'toy'"),
    ],
)
def test_a_lock_that_is_not_understood_is_refused_in_one_sentence(tmp_path, text, sentence):
    (tmp_path / "toy.txt").write_text(text)
    with pytest.raises(UserError, match=re.escape(sentence)):
        read(tmp_path / "toy.txt")
