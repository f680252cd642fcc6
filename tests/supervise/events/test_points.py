"""Invalid points events from a hostile runner are refused."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from jobs.messages.events import POINTS_AN_EVENT, RUNNER_EVENT
from jobs.spec.sections.measures import LONGEST_NAME

GOOD = {"type": "points", "time": 1, "names": ["a", "b"], "at": [1], "times": [1], "values": [[1], [2]]}
POINTS = [0.5] * (POINTS_AN_EVENT + 1)


@pytest.mark.parametrize(
    "hostile",
    [
        {"values": [[1]]},
        {"values": [[1], [2, 3]]},
        {"times": []},
        {"at": [], "times": [], "values": [[], []]},
        {"at": [float("nan")]},
        {"values": [[1], [float("inf")]]},
        {"at": [None]},
        {"names": ["a", "a"]},
        {"names": ["a", ""]},
        {"names": ["a", "b" * (LONGEST_NAME + 1)]},
        {"names": [["a"], "b"]},
        {"x": "a curve"},
        {"names": ["a"], "at": POINTS, "times": POINTS, "values": [POINTS]},
    ],
)
def test_an_invalid_points_event_is_refused(hostile: dict[str, Any]) -> None:
    assert RUNNER_EVENT.validate_json(json.dumps(GOOD))
    with pytest.raises(ValidationError):
        RUNNER_EVENT.validate_json(json.dumps(GOOD | hostile))


def test_a_metric_event_has_the_same_limit_of_points() -> None:
    one = ["loss", 1, 1, 1]
    for count, fits in ((POINTS_AN_EVENT, True), (POINTS_AN_EVENT + 1, False)):
        line = json.dumps({"type": "metric", "time": 1, "points": [one] * count})
        if fits:
            assert RUNNER_EVENT.validate_json(line)
        else:
            with pytest.raises(ValidationError):
                RUNNER_EVENT.validate_json(line)
