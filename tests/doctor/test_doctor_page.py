"""The page about the doctor against its checks."""

from __future__ import annotations

import re
from pathlib import Path

from trainmark.machine.diagnosis import CHECKS, ESSENTIAL

PAGE = Path(__file__).parents[2] / "docs" / "doctor.md"
ROWS = re.findall(r"^\| `([^`]+)`( †)? \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def test_every_check_is_in_the_table_and_no_other():
    assert sorted(name for name, _ in ROWS) == sorted(check.name for check in CHECKS)


def test_the_table_marks_those_for_which_a_run_is_refused():
    assert {name for name, dagger in ROWS if dagger} == {check.name for check in ESSENTIAL}
