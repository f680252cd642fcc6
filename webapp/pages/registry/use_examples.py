"""Builds the examples of requests for a version, and the meaning of its answers."""

import json
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from jobs.models import ModelVersion
from jobs.queries.registry import versions
from jobs.spec.signature import Signature, Verb, answers, takes_flat_features
from webapp import prediction

SHOWN_LABELS = 12


class Example(NamedTuple):
    """A request for the same row in another form, as a command."""

    title: str
    command: str


def further_examples(version: ModelVersion, signature: Signature, body: str) -> list[Example]:
    """Return commands that send the row of a predict body in the other forms that the version takes."""
    if not body or any(column.type == "image" for column in signature.columns):
        return []
    (instance,) = json.loads(body)["instances"]
    return [
        Example(title, prediction.curl_line(version.model.name, _in_json(content), verb=verb))
        for title, verb, content in _forms(version, signature, instance)
    ]


def _forms(version: ModelVersion, signature: Signature, instance: Any) -> Iterator[tuple[str, str, Any]]:
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
    titles: dict[Verb, str] = {"classify": "The classes with their names", "regress": "As a regression"}
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
    # Code and uploaded files may return other numbers, such as logits.
    word = "score" if version.code_id is not None or version.what == "uploaded" else "probability"
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
