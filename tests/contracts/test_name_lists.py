"""Lists of names in one text."""

import pytest

from jobs.spec.name_lists import read_names, write_names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        (" , ,", []),
        ("age", ["age"]),
        (" age ,sex,", ["age", "sex"]),
        ('age, "dist, km"', ["age", "dist, km"]),
        ('"dist, km","a ""b"""', ["dist, km", 'a "b"']),
        ('"""quoted"""', ['"quoted"']),
        ('size 5"', ['size 5"']),
        ("first\nsecond", ["first", "second"]),
    ],
)
def test_names_are_separated_by_commas_unless_they_are_in_quotes(text: str, names: list[str]) -> None:
    assert read_names(text) == names
    assert read_names(write_names(names)) == names


@pytest.mark.parametrize("text", ['"dist, km', '"dist" km, age'])
def test_a_quote_that_is_not_closed_is_refused_with_the_form_that_is_accepted(text: str) -> None:
    with pytest.raises(ValueError, match='put a name with a comma in quotes: "dist, km"'):
        read_names(text)
