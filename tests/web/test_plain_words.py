"""The filter that shows JSON values in words."""

import pytest

from webapp.templatetags.trainyard import in_words


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
