"""Builds a model version's prediction form from its signature."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from jobs.models import ModelVersion
from jobs.queries.registry import vector_inputs, versions
from jobs.spec.data.profile import Profile
from jobs.spec.signature import InputWindow, Signature, TensorSpec
from webapp.pages.registry import tryout_columns, tryout_windows
from webapp.template_context import Context

MAX_FIELDS = 40
MAX_COLUMNS = 100
"""Columns of a table with a field each, which may list a hundred values."""
MAX_EXAMPLE = 10_000
"""Values of an example of the input. An uploaded model may take millions, which no page could show."""


@dataclass(frozen=True)
class PositionsSection(Context):
    """The column at each position in a vector input, for `positions.html`."""

    positions: Sequence[vector_inputs.Position] = ()
    encodes_texts: bool = False


@dataclass(frozen=True)
class TryoutForm(PositionsSection):
    """The prediction form, with the fields for its kind.

    Attributes:
        kind: `none`, `window`, `columns`, `fields`, `grid` or `json`.
        signature: the version's signature; None for the kind `none`.
        text: an example input as text, for the kinds `window`, `grid` and `json`.
        columns, has_image: the fields for table columns, and whether one takes an image.
        fields: names and values for an input with few numbers.
        grid_rows, grid_columns, top: the drawing grid's size, and a drawn pixel's value.
    """

    kind: str = "json"
    signature: Signature | None = None
    text: str = ""
    columns: Sequence[tryout_columns.ColumnField] = ()
    has_image: bool = False
    fields: Sequence[tuple[str, Any]] = ()
    grid_rows: int | None = None
    grid_columns: int | None = None
    top: float = 0.0


def form_context(version: ModelVersion) -> TryoutForm:
    """Return the form: table columns or rows, a drawing grid, numbers, or JSON."""
    if not version.signature:
        return TryoutForm(kind="none")
    signature = Signature.model_validate(version.signature)
    profile = versions.dataset_profile(version)
    if signature.window is not None:
        text = _window_text(signature, signature.window, profile)
        return TryoutForm(kind="window", signature=signature, text=text)
    inputs = positions_context(version)
    form = TryoutForm(inputs.positions, inputs.encodes_texts, signature=signature)
    if signature.columns:
        return _with_columns(form, signature, profile)
    if sum(map(_count_values, signature.inputs)) > MAX_EXAMPLE:
        return form
    if len(signature.inputs) > 1:
        return replace(form, text=json.dumps({t.name: _zeros_of_shape(t) for t in signature.inputs}))
    return _with_tensor(form, signature.inputs[0], profile)


def _with_tensor(form: TryoutForm, tensor: TensorSpec, profile: Profile | None) -> TryoutForm:
    """Return the form for a single tensor: a grid for a small image, fields for few numbers, else JSON."""
    sample = _sample_tensor(profile, tensor, form.positions)
    form = replace(form, text=json.dumps(_round_values(sample)))
    is_sequence = profile is not None and profile.kind == "sequence"
    if _is_image(tensor) and not is_sequence:
        rows, columns = tensor.shape[:2]
        return replace(
            form, kind="grid", grid_rows=rows, grid_columns=columns, top=_highest_value(profile, sample)
        )
    if 0 < len(form.positions) <= MAX_FIELDS:
        names = [position.name for position in form.positions]
        return replace(form, kind="fields", fields=list(zip(names, sample, strict=True)))
    return form


def _with_columns(form: TryoutForm, signature: Signature, profile: Profile | None) -> TryoutForm:
    """Return the form with a field for each column, or for many columns the first row as JSON."""
    if len(signature.columns) <= MAX_COLUMNS:
        has_image = any(column.type == "image" for column in signature.columns)
        columns = tryout_columns.column_fields(signature, profile)
        return replace(form, kind="columns", columns=columns, has_image=has_image)
    if len(signature.columns) > MAX_EXAMPLE:
        return form
    row = tryout_columns.example_row(signature, profile)
    return replace(form, text=json.dumps(row, ensure_ascii=False))


def _window_text(signature: Signature, window: InputWindow, profile: Profile | None) -> str:
    """Return a window's rows as CSV; empty for a window that is too large to show."""
    if window.rows * len(signature.columns) > MAX_EXAMPLE:
        return ""
    rows = tryout_windows.example_rows(signature, window, profile)
    return tryout_windows.as_csv(signature, rows, profile)


def positions_context(version: ModelVersion) -> PositionsSection:
    """Return the column at each input position."""
    positions = vector_inputs.vector_positions(version)
    return PositionsSection(positions, any(p.word is not None for p in positions))


def _is_image(tensor: TensorSpec) -> bool:
    """Return whether the input can be drawn: one channel with at most 32 by 32 pixels."""
    shape = tensor.shape
    flat = len(shape) == 2 or (len(shape) == 3 and shape[2] == 1)
    return flat and all(size is not None and size <= 32 for size in shape[:2])


def _count_values(tensor: TensorSpec) -> int:
    return math.prod(size or 1 for size in tensor.shape)


def _zeros_of_shape(tensor: TensorSpec) -> Any:
    value: Any = 0
    for size in reversed(tensor.shape):
        value = [value] * (size or 1)
    return value


def _sample_tensor(
    profile: Profile | None, tensor: TensorSpec, positions: Sequence[vector_inputs.Position]
) -> Any:
    """Return the first previewed row in the tensor's shape, encoded as the model expects it, or zeros."""
    row = dict(profile.preview[0]) if profile and profile.preview else {}
    if profile is None or not row:
        return _zeros_of_shape(tensor)
    values = [p.value_in(row) for p in positions] or [row.get(name) for name in profile.features]
    value = values[0] if profile.kind != "vector" and values else values
    numbers = _flatten(value)
    if len(numbers) != _count_values(tensor) or not all(isinstance(n, int | float) for n in numbers):
        return _zeros_of_shape(tensor)
    # Nested from the last dimension on; the first one is then the list itself.
    nested: list[Any] = numbers
    for size in reversed([dimension or 1 for dimension in tensor.shape[1:]]):
        nested = [nested[i : i + size] for i in range(0, len(nested), size)]
    return nested


def _flatten(value: Any) -> list[Any]:
    return [leaf for item in value for leaf in _flatten(item)] if isinstance(value, list | tuple) else [value]


def _round_values(value: Any) -> Any:
    if isinstance(value, list):
        return [_round_values(item) for item in value]
    return round(value, 4) if isinstance(value, float) else value


def _highest_value(profile: Profile | None, sample: Any) -> float:
    """Return the data's largest value, which a drawn pixel has."""
    largest = [column.max for column in profile.columns if column.shape] if profile else []
    numbers = [value for value in largest if value is not None]
    return max(numbers or [*(n for n in _flatten(sample) if isinstance(n, int | float)), 1.0])


def example_body(version: ModelVersion) -> str:
    """Return a valid request body, for the code examples; empty for an input that is too large to show."""
    form = form_context(version)
    if form.signature is not None and form.kind == "columns":
        row = tryout_columns.example_row(form.signature, versions.dataset_profile(version))
        return json.dumps({"instances": [row]}, ensure_ascii=False)
    if not form.text:
        return ""
    if form.signature is not None and form.kind == "window":
        return _example_of_window(form.signature, versions.dataset_profile(version))
    return json.dumps({"instances": [json.loads(form.text)]})


def _example_of_window(signature: Signature, profile: Profile | None) -> str:
    rows = tryout_windows.example_rows(signature, signature.window, profile) if signature.window else []
    return json.dumps({"instances": [{"rows": rows}]}, ensure_ascii=False)
