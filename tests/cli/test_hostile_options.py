"""Options whose text is no number, no name or no file: one sentence, before anything is done."""

from __future__ import annotations

import pytest

DIGITS = "9" * 5000


@pytest.mark.parametrize(
    "words",
    [
        ("doctor", "--ports", DIGITS),
        ("fit", "--framework", "pytorch", "--cap", f"{DIGITS}GB"),
        ("fabric", "--output", ""),
        ("run", "quick", "--dry-run", "--hosts", f"a:{DIGITS}"),
    ],
    ids=lambda words: " ".join(words)[:30],
)
def test_a_hostile_option_is_one_sentence(trainmark, words):
    result = trainmark(*words)
    assert (result.code, result.err.count("\n")) == (2, 1)


def test_one_unreadable_path_of_an_audit_does_not_cost_the_others(trainmark, tmp_path):
    (tmp_path / "report.md").write_text("# Report\n\nFast.\n")
    result = trainmark("audit", "report.md", "none.md")
    assert result.code == 1
    assert "report.md" in result.out
    assert result.err == "trainmark: none.md: no such file or folder.\n"
