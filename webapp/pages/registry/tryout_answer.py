"""Sends the form's input to the prediction server, and shows the answer."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.http import QueryDict

from jobs.errors import BadInput, Conflict
from jobs.models import ModelVersion
from jobs.queries.registry import versions
from jobs.spec.problems import Problem
from jobs.spec.signature import Signature
from webapp import prediction
from webapp.http_errors import Malformed
from webapp.json_text import read_json
from webapp.limits import images
from webapp.pages.registry import tryout_columns, tryout_windows
from webapp.pages.registry.tryout import MAX_COLUMNS, form_context
from webapp.template_context import Context

SHOWN_CLASSES = 20
LABEL_THRESHOLD = 0.5
"""A label is predicted above this probability, as evaluations count."""


@dataclass(frozen=True)
class TryoutAnswer(Context):
    """The prediction server's answer, or the reason for a refusal.

    Attributes:
        sent_text: the input as the form shows it again.
        refused: the reason, if there is no answer.
        answered: whether there is an answer.
        best, classes: the predicted class, and the classes by descending probability.
        number, target: a predicted number, and the target's name.
        output: another output as JSON.
    """

    sent_text: str
    refused: str = ""
    answered: bool = False
    best: str = ""
    classes: Sequence[tuple[str, float, float]] = ()
    number: float | None = None
    target: str = ""
    output: str = ""


def answer_context(posted: QueryDict, version: ModelVersion, files: tryout_columns.Files) -> TryoutAnswer:
    """Send the form's input to the prediction server.

    Raises:
        Unavailable: the input is an image, and this process sends as many as it may.
    """
    if not files:
        return _ask_server(posted, version, files)
    with images.place():
        return _ask_server(posted, version, files)


def _ask_server(posted: QueryDict, version: ModelVersion, files: tryout_columns.Files) -> TryoutAnswer:
    try:
        instance = _read_instance(posted, version, files)
        outputs = prediction.predict(version.model.name, version.number, [instance])
    except (BadInput, Conflict) as error:
        return TryoutAnswer(posted.get("instance", ""), refused=error.message)
    answer = TryoutAnswer("" if files else json.dumps(instance), answered=True)
    return _with_output(answer, outputs[0], version)


def _read_instance(posted: QueryDict, version: ModelVersion, files: tryout_columns.Files) -> Any:
    signature = Signature.model_validate(version.signature) if version.signature else None
    try:
        if signature is not None and signature.window is not None:
            return tryout_windows.read_window(
                posted.get("instance", ""), signature, versions.dataset_profile(version)
            )
        if signature is not None and 0 < len(signature.columns) <= MAX_COLUMNS:
            return tryout_columns.read_row(posted, signature, files)
        form = form_context(version)
        if form.kind == "fields":
            values = [float(value) for value in posted.getlist("field")]
            if len(values) != len(form.fields) or not all(math.isfinite(v) for v in values):
                raise ValueError("each field needs a number")
            return values
        return read_json(posted.get("instance", "").encode())
    except Malformed as error:
        raise BadInput(error.message, [Problem("/instance", error.message)]) from error
    except ValueError as error:
        message = f"The input cannot be read: {error}"
        raise BadInput(message, [Problem("/instance", message)]) from error


def _with_output(answer: TryoutAnswer, output: Any, version: ModelVersion) -> TryoutAnswer:
    """Return the answer with the classes by descending probability, a number, or the raw output."""
    numbers = output if isinstance(output, list) else [output]
    labels = [str(label) for label in version.class_labels]
    # One sigmoid output is the probability of the second class.
    if len(labels) == 2 and len(numbers) == 1 and isinstance(numbers[0], int | float):
        numbers = [1 - numbers[0], numbers[0]]
    if not labels and len(numbers) == 1 and isinstance(numbers[0], int | float):
        return replace(answer, number=numbers[0], target=versions.target_of(version))
    if len(labels) != len(numbers) or not all(isinstance(n, int | float) for n in numbers):
        text = json.dumps(output)
        # The server sends null for NaN and infinities; no other output is null.
        return replace(answer, output=f"{text} (null: NaN or infinite)" if "null" in text else text)
    ranked = sorted(zip(labels, numbers, strict=True), key=lambda pair: -pair[1])
    best = ranked[0][0]
    if versions.task_of(version) == "multilabel":
        best = ", ".join(label for label, p in ranked if p > LABEL_THRESHOLD) or "no label"
    classes = [(label, p, round(100 * p, 1)) for label, p in ranked[:SHOWN_CLASSES]]
    return replace(answer, best=best, classes=classes)
