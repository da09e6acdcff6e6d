"""What a command says to do next: to a person, and to nobody else."""

from __future__ import annotations

import os
import pty
import re
import shlex
import subprocess
import sys

import click
import pytest

from trainmark.cli.crash import NEXT, next_step
from trainmark.cli.main import LateCommands
from trainmark.cli.main import trainmark as commands

VALUES = {
    "run": "runs/a b",
    "before": "x",
    "after": "y",
    "file": "z.trainmark",
    "batch": 64,
    "name": "jax",
    "family": "gpt2",
}


@pytest.mark.parametrize("name", NEXT)
def test_every_next_step_is_a_command_with_options_that_there_are(name):
    line = next_step(name, **VALUES).removeprefix("next: ").partition("   ")[0]
    words = shlex.split(line.partition(" -- ")[0])
    group: click.Command = commands
    for word in words[1:]:
        if isinstance(group, LateCommands | click.Group):
            group = group.get_command(click.Context(group), word)
            assert group is not None, word
    known = {option for parameter in group.params for option in parameter.opts}
    assert set(re.findall(r"--[a-z-]+", line.partition(" -- ")[0])) <= known


def test_a_name_with_a_space_can_be_pasted():
    assert "'runs/a b'" in next_step("run", **VALUES)


def test_a_person_is_told_what_is_next_and_a_pipe_is_not(runs, tmp_path, trainmark):
    piped = trainmark("compare", "before", "after")
    assert "next:" not in piped.out + piped.err
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "trainmark", "compare", "before", "after"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        said = b""
        try:
            while piece := os.read(ours, 1 << 14):
                said += piece
        except OSError:  # the other end is closed
            pass
        process.wait()
    os.close(ours)
    assert b"next: trainmark watch before after" in said
