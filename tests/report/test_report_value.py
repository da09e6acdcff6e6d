"""How the values of a trial's row are printed."""

import pytest

from trainmark.pages.runs import readable


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("detail", "as it is", "as it is"),
        ("low", None, ""),
        ("reached", True, "True"),
        ("batch_per_device", 1024, "1024"),
        ("count", 1_234_567, "1,234,567"),
        ("throughput", 6154.678912, "6,154.7"),
        ("throughput", 101.0, "101"),
        ("mfu", 0.4123456, "0.4123"),
        ("loss", 1.2e-7, "1.2e-07"),
        ("loss", float("nan"), "nan"),
        ("memory_bytes", 3 << 30, "3.00 GiB"),
        ("memory_bytes", 17, "17"),
        ("sum(seconds)", 12.3456, "12.3 s"),
        ("step_seconds", 0.0421, "42.1 ms"),
        ("max(started) - min(started)", 75.5, "75.50"),
    ],
)
def test_a_value_is_printed_by_the_name_of_its_column(name, value, text):
    assert readable(name, value) == text
