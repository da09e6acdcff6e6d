"""The group `trainmark data` itself."""

from trainmark.cli.data.command import COMMANDS


def test_help_names_every_command(trainmark):
    said = trainmark("data", "--help")
    assert said.code == 0
    for name in COMMANDS:
        assert f"  {name} " in said.out


def test_a_command_that_does_not_exist_is_one_sentence(trainmark):
    said = trainmark("data", "covnert")
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert "did you mean 'convert'?" in said.err


def test_without_a_command_help_is_shown(trainmark):
    assert "Commands:" in trainmark("data").out
