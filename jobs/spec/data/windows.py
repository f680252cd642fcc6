"""Resolves windows over a table: several rows, in time order, are one prediction's input."""

from collections.abc import Iterator

from jobs.spec.data.columns import ORDERED
from jobs.spec.data.profile import Column, DataSchema, Profile
from jobs.spec.data.split_roles import column_with, resolved
from jobs.spec.problems import Problem
from jobs.spec.sections.data import DataSpec, Split, Window


def resolved_window(data: DataSpec, schema: DataSchema) -> Window | None:
    """Return a spec's window with its columns: the split's, or those with the roles time and group."""
    if data.window is None:
        return None
    names = {
        "time": data.window.time or data.split.time or column_with(schema, "time"),
        "group": data.window.group or data.split.group or column_with(schema, "group"),
    }
    return data.window.model_copy(update=names)


def is_windowed(data: DataSpec, schema: DataSchema) -> bool:
    """Return whether these data's rows are read in the windows that a spec sets."""
    return data.window is not None and schema.has_pipeline and schema.images is None


def problems(data: DataSpec, profile: Profile) -> Iterator[Problem]:
    """Yield why a table cannot be read in a spec's windows, with pointers into it."""
    window = resolved_window(data, profile)
    if window is None:
        return
    if not is_windowed(data, profile):
        kind = f"{profile.kind}s" if profile.has_pipeline or profile.kind != "vector" else "arrays"
        yield Problem("/data/window", f"windows are for tables, but the data are {kind}; leave it out")
        return
    if window.time is None:
        message = "windows need the order of their rows: name a column here, or give one the role time"
        yield Problem("/data/window/time", message)
    columns = {column.name: column for column in profile.columns}
    for field, name in (("time", window.time), ("group", window.group)):
        if name is not None and (reason := _refusal_of(name, field, columns)) is not None:
            yield Problem(f"/data/window/{field}", reason)
    split = resolved(data.split, profile)
    if not any((split.time, split.group, split.column)):
        yield Problem(
            "/data/split/time",
            "windows overlap, so parts of rows chosen at random would have the same rows: split over time, "
            "by group, or by a column that names the parts",
        )
    if (reason := _group_refusal(window, split)) is not None:
        yield Problem("/data/window/group", reason)
    if window.rows + window.horizon > profile.rows:
        yield Problem(
            "/data/window/rows",
            f"a window of {window.rows:,} rows with a target {window.horizon:,} rows later does not fit into "
            f"{profile.rows:,} rows",
        )


def _refusal_of(name: str, field: str, columns: dict[str, Column]) -> str | None:
    if name not in columns:
        return f"no column {name!r}; the columns are {', '.join([*columns][:20])}"
    column = columns[name]
    if field == "time" and column.type not in ORDERED:
        return f"column {name!r} of type {column.type} has no order in time; choose a date or a number"
    if column.missing:
        return f"column {name!r} has no value in {column.missing:,} rows; windows need one in each row"
    return None


def _group_refusal(window: Window, split: Split) -> str | None:
    """Return why the parts of a split by group would share rows in their windows, or None if not."""
    is_by_group = split.group is not None and split.column is None and split.time is None
    if not is_by_group or split.group == window.group:
        return None
    return (
        f"windows of rows of one {window.group!r} overlap, so parts that are split by the group "
        f"{split.group!r} would have the same rows: choose {split.group!r} here too, or split over time"
    )


def folds_refusal(data: DataSpec, profile: Profile) -> str | None:
    """Return why windowed rows cannot be divided into folds, or None if they can.

    Windows in one group are in one fold. Others overlap with windows in other folds.
    """
    window, split = resolved_window(data, profile), resolved(data.split, profile)
    if window is None or (split.group is not None and split.group == window.group):
        return None
    return (
        "windows overlap, so folds would have the same rows: use holdout, or split by the windows' own group"
    )
