"""Numbers in addresses and hidden fields, which anyone can change."""

import pytest

from webapp.whole_numbers import number_or_text, read_whole


def test_a_number_of_few_digits_is_read() -> None:
    assert (read_whole("0"), read_whole("999999999"), read_whole("12", digits=2)) == (0, 999_999_999, 12)


@pytest.mark.parametrize("text", ["", " 1", "-1", "1.0", "1e3", "²", "٣", "1234567890", "9" * 5000])
def test_any_other_text_is_no_number(text: str) -> None:
    assert read_whole(text) is None
    assert number_or_text(text) == text


def test_a_number_with_more_digits_than_a_field_has_is_none() -> None:
    assert read_whole("123", digits=2) is None
