"""docs/frameworks.md against the locks and the command that it describes."""

from dataclasses import fields

import pytest
from doc_pages import code, page, section, table

from trainmark.machine.frameworks.installed import State
from trainmark.machine.frameworks.locks import FOLDER, read
from trainmark.runner.inventory import OWN_INTERPRETER, FrameworkStatus

PAGE = page("docs/frameworks.md")
ROWS = {code(row["framework"])[0]: row for row in table(section(PAGE, "Which Python"))}
LOCKS = sorted(FOLDER.glob("*.txt"))


def test_every_framework_with_a_lock_is_in_the_table_and_no_other():
    assert set(ROWS) == {path.name.partition(".")[0] for path in LOCKS}


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.stem)
def test_the_table_says_what_the_lock_says(path):
    lock, row = read(path), ROWS[path.name.partition(".")[0]]
    platforms = [name for name in row if name in path.name] or ["linux-x86_64", "linux-aarch64"]
    for platform in platforms:
        if lock.unavailable:
            assert row[platform] == "no wheel"
        else:
            assert (row["version"], row["Python"]) == (lock.version, lock.pythons)
            assert row[platform].startswith(f"{lock.megabytes:,} MB")


def test_every_state_is_in_the_table():
    states = {code(row["state"])[0] for row in table(section(PAGE, "States"))}
    assert states == {*(state.value for state in State), OWN_INTERPRETER}


def test_the_json_has_the_names_that_the_page_lists():
    names = {code(row["name"])[0] for row in table(section(PAGE, "The JSON"))}
    assert names == {*(field.name for field in fields(FrameworkStatus)), "conformant"}
