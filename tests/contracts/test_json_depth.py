"""JSON text is checked for depth without parsing it."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.spec.json_depth import MAX_DEPTH, is_too_deep


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_text_is_too_deep_above_the_limit(opening: str, closing: str) -> None:
    def nested(depth: int) -> bytes:
        return (opening * depth + "1" + closing * depth).encode()

    assert not is_too_deep(nested(MAX_DEPTH))
    assert is_too_deep(nested(MAX_DEPTH + 1))
    assert is_too_deep(nested(100_000))


def test_text_without_an_end_is_measured() -> None:
    assert is_too_deep(b"[" * 100_000)
    assert not is_too_deep(b'"' + rb"\"[" * 100_000)


@settings(max_examples=50, deadline=None)
@given(st.text('[]{}"\\ a', max_size=20))
def test_brackets_in_strings_and_beside_each_other_are_not_nested(text: str) -> None:
    listed = [[{text: text}]] * 60
    assert not is_too_deep(json.dumps(listed).encode())
    assert is_too_deep(json.dumps(listed).encode() + b"[" * (MAX_DEPTH + 1))
