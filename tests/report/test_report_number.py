"""Numbers as a report shows them."""

from __future__ import annotations

import pytest

from trainmark.pages import number


@pytest.mark.parametrize(
    ("seconds", "shown"), [(42.13, "42.1 s"), (725, "12:05"), (3725, "1:02:05"), (0.0123, "12.3 ms")]
)
def test_a_duration_is_shown_as_a_clock_from_a_minute_up(seconds, shown):
    assert number.clock(seconds) == shown


def test_memory_is_shown_in_powers_of_two():
    assert number.gibibytes(24 * 2**30) == "24.0"


@pytest.mark.parametrize(("count", "text"), [(0, "0 files"), (1, "1 file"), (1234, "1,234 files")])
def test_a_count_agrees_with_its_noun(count, text):
    assert number.counted(count, "file") == text
