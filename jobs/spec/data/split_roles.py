"""Resolves splits by column roles: named parts, rows in time order, or groups together."""

from jobs.spec.data.columns import ColumnRole
from jobs.spec.data.profile import DataSchema
from jobs.spec.sections.data import Split

MIN_GROUPS = 3
"""A split by group needs a group for each part."""


def few_groups(column: str, groups: int) -> str:
    """Return why a column with fewer groups than parts cannot split rows."""
    values = "1 value" if groups == 1 else f"{groups} different values"
    return (
        f"column {column!r} has {values}; a split by group needs at least {MIN_GROUPS}, one each for "
        "training, validation and test"
    )


def resolved(split: Split, schema: DataSchema) -> Split:
    """Return a split with its column: its own, or else the one with the role split, time or group.

    A column that names the parts comes first: it decides about each row. With time and group the split is
    along time: a random choice among groups would train on rows newer than the test rows.
    """
    if not split.use_roles or any((split.group, split.column, split.time)):
        return split
    if (names := column_with(schema, "split")) is not None:
        return split.model_copy(update={"column": names})
    if (time := column_with(schema, "time")) is not None:
        return split.model_copy(update={"time": time})
    if (group := column_with(schema, "group")) is not None:
        return split.model_copy(update={"group": group})
    return split


def canonical(split: Split, schema: DataSchema) -> Split:
    """Return a resolved split in which settings without effect have their defaults.

    Equal parts have equal canonical splits, apart from two columns with the same content.
    """
    resolved_split = resolved(split, schema)
    is_along = any((resolved_split.group, resolved_split.column, resolved_split.time))
    idle = [name for name, has_effect in _effects(resolved_split, schema).items() if not has_effect]
    # Without such a column there is nothing to follow.
    follows = is_along or resolved(Split(), schema) == Split()
    fields = {name: Split.model_fields[name].default for name in idle}
    return resolved_split.model_copy(update={**fields, **({"use_roles": True} if follows else {})})


def _effects(split: Split, schema: DataSchema) -> dict[str, bool]:
    """Return for each setting of a resolved split whether it has an effect."""
    has_shares = split.column is None
    return {
        "validation": has_shares,
        "test": has_shares,
        "seed": has_shares and split.time is None,
        "stratify": not any((split.group, split.column, split.time))
        and schema.task in ("binary", "multiclass"),
    }


def column_with(schema: DataSchema, role: ColumnRole) -> str | None:
    """Return the name of the column with a role, or None if there is none."""
    return next((column.name for column in schema.columns if column.role == role), None)


def named_part_rows(split: Split, schema: DataSchema) -> tuple[int, int, int] | None:
    """Count the training, validation and test rows that a column with the role split names.

    None if this split follows no such column.
    """
    column = resolved(split, schema).column
    if schema.part_rows is None or column is None or column != column_with(schema, "split"):
        return None
    return schema.part_rows


def is_stratified(split: Split, schema: DataSchema) -> bool:
    """Return whether each part of a resolved split has the same class proportions as the whole."""
    is_random = not any((split.group, split.column, split.time))
    return split.stratify and is_random and schema.task in ("binary", "multiclass")
