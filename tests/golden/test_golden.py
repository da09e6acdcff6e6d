"""What commands say of recorded runs is what is kept in `expected/`, byte for byte; see golden.py."""

import pytest

from golden import EXPECTED, Sandbox, commands, difference

COMMANDS = commands()


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory):
    made = Sandbox(tmp_path_factory.mktemp("golden"))
    yield made
    made.close()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_what_it_said(sandbox, name):
    changes = difference(name, sandbox.output(name, COMMANDS[name]))
    assert not changes, f"\n{changes}\nto take it over: python -m tests.golden --update {name}"


def test_every_expected_output_is_of_a_command():
    assert {path.name for path in EXPECTED.iterdir()} == COMMANDS.keys()
