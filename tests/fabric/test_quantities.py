"""Sizes, times and rates as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmark.measure.quantity import bytes_words, parse_bytes, rate_words, seconds_words


@pytest.mark.parametrize(
    ("text", "size"), [("8", 8), ("1K", 1024), (" 64m ", 1 << 26), ("2GiB", 1 << 31), ("3 MB", 3 << 20)]
)
def test_a_size_is_read(text, size):
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5M", "M", "64X", "9" * 16])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ValueError, match="is not a size"):
        parse_bytes(text)


@given(st.integers(1, 1 << 40))
def test_a_written_size_is_the_size(size):
    assert parse_bytes(bytes_words(size).replace(",", "")) == size


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(16.2e-6, "16.2 µs"), (1.2e-3, "1.20 ms"), (999.96e-6, "1.00 ms"), (2.0, "2.00 s"), (None, "n/a")],
)
def test_a_time_is_written_in_the_unit_that_fits(seconds, text):
    assert seconds_words(seconds) == text


@pytest.mark.parametrize(
    ("rate", "text"), [(11.6e9, "11.6 GB/s"), (5e5, "500 kB/s"), (7.0, "7.00 B/s"), (float("inf"), "n/a")]
)
def test_a_rate_is_written_in_the_unit_that_fits(rate, text):
    assert rate_words(rate) == text
