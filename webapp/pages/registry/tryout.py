"""Builds the prediction form of a model version from its signature, and shows the predictions."""

import json
import math
from typing import Any

from django.http import QueryDict

from jobs.errors import BadInput, Conflict
from jobs.models import ModelVersion
from jobs.queries.registry import vector_inputs, versions
from jobs.spec.data.profile import Profile
from jobs.spec.problems import Problem
from jobs.spec.signature import InputWindow, Signature, TensorSpec
from webapp import prediction
from webapp.http_errors import Malformed
from webapp.json_text import read_json
from webapp.limits import images
from webapp.pages.registry import tryout_columns, tryout_windows

MAX_FIELDS = 40
MAX_COLUMNS = 100
"""Columns of a table with a field each, which may list a hundred values."""
SHOWN_CLASSES = 20
LABEL_THRESHOLD = 0.5
"""A label is predicted above this probability, as evaluations count."""
MAX_EXAMPLE = 10_000
"""Values of an example of the input. An uploaded model may take millions, which no page could show."""


def form_context(version: ModelVersion) -> dict[str, Any]:
    """Return the context of the form: columns or rows of a table, a drawing grid, numbers, or JSON."""
    if not version.signature:
        return {"kind": "none"}
    signature = Signature.model_validate(version.signature)
    profile = versions.dataset_profile(version)
    if signature.window is not None:
        return {"signature": signature, **_window_context(signature, signature.window, profile)}
    if signature.columns:
        return {**positions_context(version), "signature": signature, **_columns_context(signature, profile)}
    tensor, several = signature.inputs[0], len(signature.inputs) > 1
    known = positions_context(version)
    context = {**known, "signature": signature, "kind": "json", "text": ""}
    if sum(map(_values, signature.inputs)) > MAX_EXAMPLE:
        return context
    positions = known["positions"]
    sample = _sample(profile, tensor, positions)
    context["text"] = json.dumps(_rounded(sample))
    if several:
        return {**context, "text": json.dumps({t.name: _zeros(t) for t in signature.inputs})}
    is_sequence = profile is not None and profile.kind == "sequence"
    if _is_image(tensor) and not is_sequence:
        top = _highest(profile, sample)
        return {**context, "kind": "grid", "rows": tensor.shape[0], "columns": tensor.shape[1], "top": top}
    if 0 < len(positions) <= MAX_FIELDS:
        names = [position.name for position in positions]
        return {**context, "kind": "fields", "fields": list(zip(names, sample, strict=True))}
    return context


def _columns_context(signature: Signature, profile: Profile | None) -> dict[str, Any]:
    """Return a field for each column of a table; of many columns the first row as JSON."""
    if len(signature.columns) <= MAX_COLUMNS:
        has_image = any(column.type == "image" for column in signature.columns)
        shown = tryout_columns.fields(signature, profile)
        return {"kind": "columns", "columns": shown, "has_image": has_image}
    if len(signature.columns) > MAX_EXAMPLE:
        return {"kind": "json", "text": ""}
    row = tryout_columns.example(signature, profile)
    return {"kind": "json", "text": json.dumps(row, ensure_ascii=False)}


def _window_context(signature: Signature, window: InputWindow, profile: Profile | None) -> dict[str, Any]:
    """Return the rows of a window as CSV; nothing of a window that is too large to show."""
    if window.rows * len(signature.columns) > MAX_EXAMPLE:
        return {"kind": "window", "text": ""}
    rows = tryout_windows.example(signature, window, profile)
    return {"kind": "window", "text": tryout_windows.as_csv(signature, rows)}


def positions_context(version: ModelVersion) -> dict[str, Any]:
    """Return the column at each position of the input, for `positions.html`."""
    positions = vector_inputs.vector_positions(version)
    return {"positions": positions, "encodes_texts": any(p.word is not None for p in positions)}


def _is_image(tensor: TensorSpec) -> bool:
    """Return whether the input can be drawn: one channel of at most 32 by 32 pixels."""
    shape = tensor.shape
    flat = len(shape) == 2 or (len(shape) == 3 and shape[2] == 1)
    return flat and all(size is not None and size <= 32 for size in shape[:2])


def _values(tensor: TensorSpec) -> int:
    return math.prod(size or 1 for size in tensor.shape)


def _zeros(tensor: TensorSpec) -> Any:
    value: Any = 0
    for size in reversed(tensor.shape):
        value = [value] * (size or 1)
    return value


def _sample(profile: Profile | None, tensor: TensorSpec, positions: list[vector_inputs.Position]) -> Any:
    """Return the first previewed row in the tensor's shape, encoded as the model expects it, or zeros."""
    row = dict(profile.preview[0]) if profile and profile.preview else {}
    if profile is None or not row:
        return _zeros(tensor)
    given = [p.value_in(row) for p in positions] or [row.get(name) for name in profile.features]
    value = given[0] if profile.kind != "vector" and given else given
    numbers = _flat(value)
    if len(numbers) != _values(tensor) or not all(isinstance(n, int | float) for n in numbers):
        return _zeros(tensor)
    # Nested from the last dimension on; the first one is then the list itself.
    nested: list[Any] = numbers
    for size in reversed([dimension or 1 for dimension in tensor.shape[1:]]):
        nested = [nested[i : i + size] for i in range(0, len(nested), size)]
    return nested


def _flat(value: Any) -> list[Any]:
    return [leaf for item in value for leaf in _flat(item)] if isinstance(value, list | tuple) else [value]


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return round(value, 4) if isinstance(value, float) else value


def _highest(profile: Profile | None, sample: Any) -> float:
    """Return the largest value in the data, which is the value of a drawn pixel."""
    found = [column.max for column in profile.columns if column.shape] if profile else []
    known = [value for value in found if value is not None]
    return max(known or [*(n for n in _flat(sample) if isinstance(n, int | float)), 1.0])


def example_body(version: ModelVersion) -> str:
    """Return a valid request body, for the code examples; empty for an input that is too large to show."""
    context = form_context(version)
    if context["kind"] == "window":
        return (
            _example_of_window(context["signature"], versions.dataset_profile(version))
            if context["text"]
            else ""
        )
    if context["kind"] == "columns":
        row = tryout_columns.example(context["signature"], versions.dataset_profile(version))
        return json.dumps({"instances": [row]}, ensure_ascii=False)
    text = context.get("text")
    return json.dumps({"instances": [json.loads(text)]}) if text else ""


def _example_of_window(signature: Signature, profile: Profile | None) -> str:
    rows = tryout_windows.example(signature, signature.window, profile) if signature.window else []
    return json.dumps({"instances": [{"rows": rows}]}, ensure_ascii=False)


def answer(posted: QueryDict, version: ModelVersion, files: tryout_columns.Files) -> dict[str, Any]:
    """Send the form's input to the prediction server and return the context of its answer.

    Raises:
        Unavailable: the input is an image, and this process sends as many as it may.
    """
    if not files:
        return _answer(posted, version, files)
    with images.place():
        return _answer(posted, version, files)


def _answer(posted: QueryDict, version: ModelVersion, files: tryout_columns.Files) -> dict[str, Any]:
    try:
        instance = _instance(posted, version, files)
        outputs = prediction.predict(version.model.name, version.number, [instance])
    except (BadInput, Conflict) as error:
        return {"refused": error.message, "text": posted.get("instance", "")}
    return {"text": "" if files else json.dumps(instance), "answered": True, **_result(outputs[0], version)}


def _instance(posted: QueryDict, version: ModelVersion, files: tryout_columns.Files) -> Any:
    signature = Signature.model_validate(version.signature) if version.signature else None
    try:
        if signature is not None and signature.window is not None:
            return tryout_windows.read(
                posted.get("instance", ""), signature, versions.dataset_profile(version)
            )
        if signature is not None and 0 < len(signature.columns) <= MAX_COLUMNS:
            return tryout_columns.read(posted, signature, files)
        context = form_context(version)
        if context["kind"] == "fields":
            values = [float(value) for value in posted.getlist("field")]
            if len(values) != len(context["fields"]) or not all(math.isfinite(v) for v in values):
                raise ValueError("each field needs a number")
            return values
        return read_json(posted.get("instance", "").encode())
    except Malformed as error:
        raise BadInput(error.message, [Problem("/instance", error.message)]) from error
    except ValueError as error:
        message = f"The input cannot be read: {error}"
        raise BadInput(message, [Problem("/instance", message)]) from error


def _result(output: Any, version: ModelVersion) -> dict[str, Any]:
    """Return the classes by descending probability, a number with its name, or the raw output."""
    numbers = output if isinstance(output, list) else [output]
    labels = [str(label) for label in version.class_labels]
    # One sigmoid output is the probability of the second class.
    if len(labels) == 2 and len(numbers) == 1 and isinstance(numbers[0], int | float):
        numbers = [1 - numbers[0], numbers[0]]
    if not labels and len(numbers) == 1 and isinstance(numbers[0], int | float):
        return {"number": numbers[0], "target": versions.target_of(version)}
    if len(labels) != len(numbers) or not all(isinstance(n, int | float) for n in numbers):
        text = json.dumps(output)
        # The server sends null for NaN and infinities; no other output is null.
        return {"output": f"{text} (null: NaN or infinite)" if "null" in text else text}
    ranked = sorted(zip(labels, numbers, strict=True), key=lambda pair: -pair[1])
    best = ranked[0][0]
    if versions.task_of(version) == "multilabel":
        best = ", ".join(label for label, p in ranked if p > LABEL_THRESHOLD) or "no label"
    return {"best": best, "classes": [(label, p, round(100 * p, 1)) for label, p in ranked[:SHOWN_CLASSES]]}
