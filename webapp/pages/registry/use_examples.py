"""Builds the examples of requests for a version, and the meaning of its answers."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from jobs.models import ModelVersion
from jobs.queries.registry import versions
from jobs.spec.signature import Signature, Verb, answers, takes_flat_features
from webapp import prediction
from webapp.pages.registry.tryout_answer import LABEL_THRESHOLD

SHOWN_LABELS = 12
LABELLED_TITLE = "The class and the probabilities by name"


class Example(NamedTuple):
    """A request for the same row in another form, as a command."""

    title: str
    command: str


def further_examples(version: ModelVersion, signature: Signature, body: str) -> list[Example]:
    """Return commands that send the row of a predict body in the other forms that the version takes."""
    image = next((column.name for column in signature.columns if column.type == "image"), None)
    if image is not None:
        command = prediction.curl_image(version.model.name, image, verb=prediction.LABELLED)
        return [Example(LABELLED_TITLE, command)] if answer_example(version, signature) else []
    if not body:
        return []
    (instance,) = json.loads(body)["instances"]
    return [
        Example(title, prediction.curl_line(version.model.name, _in_json(content), verb=verb))
        for title, verb, content in _forms(version, signature, instance)
    ]


def _forms(version: ModelVersion, signature: Signature, instance: Any) -> Iterator[tuple[str, str, Any]]:
    if answer_example(version, signature) is not None:
        yield LABELLED_TITLE, prediction.LABELLED, {"instances": [instance]}
    names = [column.name for column in signature.columns]
    if signature.window is not None:
        lists = [[row.get(name) for name in names] for row in instance["rows"]]
        yield "Rows as lists, all columns in order", "predict", {"instances": [{"rows": lists}]}
    elif names:
        yield (
            "A row as a list, all columns in order",
            "predict",
            {"instances": [[instance.get(n) for n in names]]},
        )
    elif len(signature.inputs) == 1:
        yield "A row as an object", "predict", {"instances": [{signature.inputs[0].name: instance}]}
    if not takes_flat_features(signature):
        return
    labels = [str(label) for label in version.class_labels]
    titles: dict[Verb, str] = {"classify": "Pairs of class and score", "regress": "As a regression"}
    for verb, title in titles.items():
        if answers(verb, signature, labels):
            yield title, verb, {"examples": [_features(signature, instance)]}


def _features(signature: Signature, instance: Any) -> dict[str, Any]:
    if signature.columns:
        return dict(instance)
    if len(signature.inputs) == 1:
        return {signature.inputs[0].name: _flat(instance)}
    return {tensor.name: _flat(instance[tensor.name]) for tensor in signature.inputs}


def _flat(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return [leaf for item in value for leaf in (_flat(item) if isinstance(item, list) else [item])]


@dataclass(frozen=True)
class AnswerExample:
    """An answer of a classifier with made-up numbers, as JSON.

    Attributes:
        classes: their names in the order of the numbers.
        plain: as TensorFlow Serving answers; empty for many classes.
        labelled: the same by name; empty for many classes.
        is_checked: whether an answer by name depends on the numbers, which may be no probabilities.
    """

    classes: Sequence[str]
    plain: str
    labelled: str
    is_checked: bool


def answer_example(version: ModelVersion, signature: Signature) -> AnswerExample | None:
    """Return an answer of a version in both forms; None if it does not return a number for each class."""
    labels = [str(label) for label in version.class_labels]
    if not labels or len({*labels}) < len(labels) or not answers("classify", signature, labels):
        return None
    multilabel = versions.task_of(version) == "multilabel"
    numbers = _made_up(len(labels), multilabel=multilabel)
    shape = signature.outputs[0].shape
    # A binary model may return only the probability of its second class, with or without an axis for it.
    plain: object = numbers if shape == (len(labels),) else numbers[-1:] if shape else numbers[-1]
    applies = [label for label, number in zip(labels, numbers, strict=True) if number > LABEL_THRESHOLD]
    by_name = dict(zip(labels, numbers, strict=True))
    row = {"label": applies if multilabel else applies[0], "probabilities": by_name}
    is_short = len(labels) <= SHOWN_LABELS
    return AnswerExample(
        labels,
        plain=_in_json({"predictions": [plain]}) if is_short else "",
        labelled=json.dumps({"predictions": [row]}, ensure_ascii=False, indent=2) if is_short else "",
        is_checked=_returns_scores(version),
    )


def _made_up(count: int, *, multilabel: bool) -> list[float]:
    """Return a number for each class: the last one is the most probable, and two labels apply."""
    if multilabel:
        return [0.9 if position in (0, count - 1) else 0.1 for position in range(count)]
    rest = [round(0.2 / max(count - 1, 1), 3)] * (count - 1)
    return [*rest, round(1 - sum(rest), 3)]


def _returns_scores(version: ModelVersion) -> bool:
    """Return whether the numbers may be no probabilities: code and uploads may return logits."""
    return version.code_id is not None or version.what == "uploaded"


def _in_json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False)


def meaning_of_output(version: ModelVersion, signature: Signature) -> str:
    """Return what each prediction is, as a sentence."""
    if len(signature.outputs) > 1:
        names = ", ".join(tensor.name for tensor in signature.outputs)
        return f"Each prediction is an object with the outputs of the model: {names}."
    shape = signature.outputs[0].shape
    width = math.prod(size or 0 for size in shape)
    labels, target = [str(label) for label in version.class_labels], versions.target_of(version)
    if labels:
        return _meaning_of_scores(version, labels, width)
    if width == 1 and target:
        ahead = signature.window.horizon if signature.window is not None else 0
        when = f", {ahead} row{'s' if ahead != 1 else ''} after the last one of the window" if ahead else ""
        return f"Each prediction is a value of {target}, in the units of this column{when}."
    if target:
        return f"Each prediction has {width} numbers for {target}, in the units of the data."
    name = signature.outputs[0].name
    return f"Each prediction is the output {name}, as the model returns it: its data are unknown."


def _meaning_of_scores(version: ModelVersion, labels: list[str], width: int) -> str:
    word = "score" if _returns_scores(version) else "probability"
    target = versions.target_of(version)
    of_target = f" of {target}" if target else ""
    if len(labels) == 2 and width == 1:
        return (
            f"Each prediction is the {word} of the class {labels[1]}{of_target}; "
            f"{labels[0]} has 1 minus this number."
        )
    if width != len(labels):
        return f"Each prediction has {width} numbers for {len(labels)} classes, as the model returns them."
    listed = ", ".join(labels[:SHOWN_LABELS]) + (", …" if len(labels) > SHOWN_LABELS else "")
    if versions.task_of(version) == "multilabel":
        each = f"one {word} for each label{of_target}, in this order: {listed}"
        return f"Each prediction has {each}. Labels above 0.5 apply."
    return f"Each prediction has the {word} of each class{of_target}, in this order: {listed}."
