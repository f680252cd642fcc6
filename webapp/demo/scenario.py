"""The data, the model and the experiment of a demo."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from webapp.demo.client import Body

Row = Any
Prediction = list[float]


@dataclass(frozen=True)
class Scenario:
    """The data, the experiment and the model of one demo.

    Attributes:
        title: of the experiment.
        dataset: slug of the data set.
        model: name of the registered model.
        spec: of the experiment, without its data.
        watched_spec: the same with longer trainings, for a person who watches.
        min_accuracy: smallest accuracy on the test rows with which the demo succeeds.
        examples: returns the inputs and the class numbers of some rows of a preview.
        things: the name of the rows in messages.
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
    """Return the most probable class. A single number is the probability of the second of two."""
    if len(prediction) == 1:
        return int(prediction[0] > 0.5)
    return max(range(len(prediction)), key=prediction.__getitem__)
