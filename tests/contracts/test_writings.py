"""Texts that are one value in several writings."""

import pytest

from jobs.spec.data.writings import folded


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("yes", "YES"),
        ("yes", " Yes\u00a0"),
        ("<=50K", "<=50K."),
        ("New York", "new\u00a0 york"),
        ("caf\u00e9", "cafe\u0301"),
        ("STRASSE", "straße"),
        ("ＡＢ１", "ab1"),
        ("a\u200bb", "ab"),
        ("1", "1.0"),
        ("1", "01"),
        ("1", "+1."),
        ("-0.50", "-.5"),
        ("0", "-0.0"),
        ("10", "1\uff10"),
    ],
)
def test_writings_of_one_value_are_equal(first: str, second: str) -> None:
    assert folded(first) == folded(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [("1", "-1"), ("1", "10"), ("1.5", "15"), ("a b", "ab"), ("1.2.3", "1.23"), (".", ""), ("1e3", "1000")],
)
def test_other_values_differ(first: str, second: str) -> None:
    assert folded(first) != folded(second)


def test_long_digits_are_compared_exactly() -> None:
    assert folded("12345678901234567890123") != folded("12345678901234567890124")
