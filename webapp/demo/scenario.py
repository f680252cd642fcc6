"""A demo's data, model and experiment."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from webapp.demo.client import Body

Row = Any
Prediction = list[float]


@dataclass(frozen=True)
class Scenario:
    """The data, experiment and model.

    Attributes:
        title: the experiment's title.
        dataset: the data set's slug.
        model: the registered model's name.
        spec: the experiment's spec, without its data.
        watched_spec: the same with longer trainings, for a person who watches.
        min_accuracy: smallest accuracy on the test rows with which the demo succeeds.
        examples: returns inputs and class numbers for some preview rows.
        things: the rows' name in messages.
        csv: returns the file to upload; None for a bundled data set.
    """

    title: str
    dataset: str
    model: str
    spec: dict[str, Any]
    watched_spec: dict[str, Any]
    min_accuracy: float
    examples: Callable[[Body], tuple[list[Row], list[int]]]
    things: str
    csv: Callable[[], bytes] | None = None


def class_of(prediction: Prediction) -> int:
    """Return the most probable class. A single number is the second class's probability."""
    if len(prediction) == 1:
        return int(prediction[0] > 0.5)
    return max(range(len(prediction)), key=prediction.__getitem__)
