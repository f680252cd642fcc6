"""Describes a model's input for an experiment's features and encodings and its template."""

import math
from collections.abc import Sequence
from typing import Any

from jobs.spec.data.column_plans import ColumnPlan, input_blocks, input_shape, plan_columns
from jobs.spec.data.file_limits import DEFAULT_LIMITS
from jobs.spec.data.profile import Profile
from jobs.spec.data.windows import is_windowed
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.data import DataSpec, Window

NUMBER_BYTES = 4
"""The bytes in an input position."""
WINDOW_NUMBERS = 3
"""For windows, each row also has its number in time order, its place there, and whether a window
predicts it."""


def roles_differ(spec: ExperimentSpec, profile: Profile) -> bool:
    """Return whether the profile does not describe a spec's roles, so that shapes are unknown."""
    data = spec.required_data
    return (
        (data.target or profile.target) != profile.target
        or (data.task or profile.task) != profile.task
        # A pipeline is planned for any features.
        or (not profile.has_pipeline and (data.features or profile.features) != profile.features)
    )


def feature_names(data: DataSpec, profile: Profile) -> tuple[str, ...]:
    """Return a table's features, in input order."""
    target = data.target or profile.target
    if data.features:
        return tuple(name for name in data.features if name != target)
    # The profile's target is an ordinary column if the experiment predicts another one.
    # Beside an image there is no other feature.
    roles = ("feature", "target") if profile.images is None else ("feature",)
    return tuple(column.name for column in profile.columns if column.role in roles and column.name != target)


def encoded(spec: ExperimentSpec, profile: Profile) -> Profile:
    """Return the profile with the columns encoded as in a training of this experiment.

    It is unchanged if the data have no pipeline, or if a feature or an option does not fit them.
    """
    names = feature_names(spec.required_data, profile)
    columns = {column.name: column for column in profile.columns}
    if not profile.has_pipeline or not names or not columns.keys() >= {*names}:
        return profile
    try:
        plans = plan_columns([columns[name] for name in names], spec.required_data.preprocessing, spec.texts)
    except ValueError:  # reported by `checks.data.problems`
        return profile
    changes = {"features": names, "input_shape": input_shape(plans), "blocks": input_blocks(plans)}
    if is_windowed(spec.required_data, profile):
        changes |= windowed(spec.required_data.window, plans)
    return profile.model_copy(update=changes)


def windowed(window: Window | None, plans: Sequence[ColumnPlan]) -> dict[str, Any]:
    """Return the profile fields that describe windows over a table's rows; none without windows."""
    if window is None:
        return {}
    return {"kind": "sequence", "input_shape": (window.rows, *input_shape(plans))}


def width_in_memory(width: int, window: Window | None) -> int:
    """Count the numbers in memory for each table row.

    Args:
        width: the positions in an encoded row.
        window: the rows that are a prediction's input; None for one row.
    """
    # All windows are made of the encoded rows, which are in memory beside them.
    return width if window is None else width * (window.rows + 1) + WINDOW_NUMBERS


def size_refusal(width: int, profile: Profile) -> str | None:
    """Return why a table with so many positions a row is too large, or None if it is not.

    Args:
        width: numbers in memory for each row; see `width_in_memory`.
        profile: the table's profile, as it was uploaded.
    """
    size = profile.rows * width * NUMBER_BYTES
    # An administrator may have allowed more for the profile.
    most = max(DEFAULT_LIMITS.table_bytes, profile.rows * math.prod(profile.input_shape) * NUMBER_BYTES)
    if size <= most:
        return None
    return (
        f"the encoded columns have {size:,} bytes; at most {most:,} are used. In data.preprocessing, choose "
        "embedding or hash for columns with many values, and words, or tokens with a small length, for texts"
    )
