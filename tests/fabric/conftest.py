"""The command as people call it, in an empty folder."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from trainmark.cli.main import main


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


@pytest.fixture
def trainmark(monkeypatch, capsys, tmp_path) -> Callable[..., Said]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRAINMARK_RUNS", raising=False)

    def call(*words: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["trainmark", *words])
        with pytest.raises(SystemExit) as left:
            main()
        said = capsys.readouterr()
        return Said(left.value.code, said.out, said.err)

    return call
