"""The filters that show JSON values and shares in words."""

from typing import Any

import pytest

from webapp.templatetags.value_filters import in_words, percent


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "none"),
        ([], "none"),
        (True, "yes"),
        (3, "3"),
        (["read", "write"], "read, write"),
        ({"loads": "passed", "metric": "failed"}, "loads passed, metric failed"),
    ],
)
def test_a_json_value_is_shown_in_words(value: object, words: str) -> None:
    assert in_words(value) == words


@pytest.mark.parametrize(("share", "words"), [(0.427, "43 %"), (0, "0 %"), (None, "–"), ("", "–")])
def test_an_unknown_share_is_a_dash(share: Any, words: str) -> None:
    assert percent(share) == words


def test_digests_in_a_text_are_shortened() -> None:
    assert in_words({"digest": "a" * 64, "rows": 3}) == "digest aaaaaaaaaaaa…, rows 3"
    assert in_words("a" * 63) == "a" * 63, "no digest"
