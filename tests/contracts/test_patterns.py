"""Users' patterns: linear time, and the meaning that Keras' `re` gives them."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.spec.checks import patterns

# Python announces set operations in character classes, but has none yet.
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")
BACKTRACKING = "((((((.+)+)+)+)+)+)+!"
PIECES = r"""a b dense _ 1 / - . \d \D \w \W \s \S \b \B ^ $ \A \Z \. \/ \n \x41 \_ \1 \07 | ( ) (?: (?i) (?i:
    (?s: (?P<n> (?P=n) (?= (?! (?<= (?> * + ? *? ++ {2} {,2} {1,} {,} { } [ab] [^a] [a-z0-9_] []a] [\d_] [a-]
    [[:alpha:]] [ ] [{,2}] \p{L} \Q \E \C \z \u0061 é"""
NAMES = st.text("abAB1_/-. \tz!{,2}", min_size=1, max_size=8) | st.sampled_from(
    ["dense_1/kernel", "DENSE", "output"]
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from(PIECES.split()), max_size=6).map("".join),
    st.lists(NAMES, min_size=1, max_size=5),
)
def test_an_accepted_pattern_matches_like_re(pattern: str, names: list[str]) -> None:
    if patterns.refusal(pattern) is not None:
        return
    expected = re.compile(pattern)
    for name in names:
        assert patterns.found_in(pattern, name) == bool(expected.search(name)), (pattern, name)
        assert patterns.matches_all_of(pattern, name) == bool(expected.fullmatch(name)), (pattern, name)


def test_a_pattern_that_backtracks_without_end_in_re_is_matched_at_once() -> None:
    assert not patterns.found_in(BACKTRACKING, "a" * 300)
    assert not patterns.matches_all_of(BACKTRACKING, "a" * 300)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("dense(", "is not a regular expression: missing )"),
        ("dense(?=_1)", "no lookahead or lookbehind"),
        ("(?<!a)b", "no lookahead or lookbehind"),
        (r"(a)\1", r"\1 refers to a group or is an octal number"),
        ("(?P<n>a)(?P=n)", "no references to groups"),
        ("a++b", "no possessive repetition"),
        ("a{,3}", "write {0,3} instead of {,3}"),
        ("[[:alpha:]]", "[:alpha:] has another meaning in other tools"),
        ("a{1001}", "at most 1000 repetitions"),
        ("((a{30}){30}){30}", "is not accepted"),
        (r"\pL", "is not a regular expression: bad escape"),
        ("\ud800", "half of a surrogate pair"),
    ],
)
def test_a_pattern_without_a_linear_equivalent_is_refused_with_the_reason(pattern: str, reason: str) -> None:
    assert reason in (patterns.refusal(pattern) or "")
    with pytest.raises(patterns.UnsupportedPattern):
        patterns.found_in(pattern, "a")


def test_the_longest_pattern_of_any_characters_is_accepted() -> None:
    assert patterns.refusal("." * 300) is None
    assert patterns.refusal("(?i)" + r"\w*/" * 74) is None
