from hypothesis import given
from hypothesis import strategies as st

from trainmark.base.text import natural_key


def test_numbers_in_names_sort_as_numbers():
    names = ["amp-b1024-1n1g", "amp-b64-1n16g", "amp-b64-1n2g", "amp-b64-1n1g", "bf16-b8", "amp"]
    assert sorted(names, key=natural_key) == [
        *("amp", "amp-b64-1n1g", "amp-b64-1n2g", "amp-b64-1n16g", "amp-b1024-1n1g", "bf16-b8"),
    ]


@given(st.lists(st.integers(0, 10**30)))
def test_names_that_differ_in_one_number_stand_in_its_order(numbers):
    names = sorted((f"b{number}-x" for number in numbers), key=natural_key)
    assert names == [f"b{number}-x" for number in sorted(numbers)]


@given(st.lists(st.text()))
def test_any_names_can_be_sorted(names):
    assert sorted(sorted(names, key=natural_key)) == sorted(names)


def test_a_number_of_more_digits_than_python_converts_is_sorted():
    assert natural_key("9" * 5000) < natural_key("1" + "0" * 5000)
