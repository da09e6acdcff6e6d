"""The group `trainmark data` itself."""

from trainmark.data.command import COMMANDS


def test_help_names_every_command(trainmark):
    result = trainmark("data", "--help")
    assert result.code == 0
    for name in COMMANDS:
        assert f"  {name} " in result.out


def test_a_command_that_does_not_exist_is_one_sentence(trainmark):
    result = trainmark("data", "covnert")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "did you mean 'convert'?" in result.err


def test_without_a_command_help_is_shown(trainmark):
    assert "Commands:" in trainmark("data").out
