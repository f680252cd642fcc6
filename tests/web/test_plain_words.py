"""How values are put into words on pages."""

import pytest

from webapp.templatetags.trainyard import told


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
def test_a_value_of_json_is_told_in_words(value: object, words: str) -> None:
    assert told(value) == words
