"""Describes a table for its profile, and turns its columns into arrays for a training."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from jobs.contracts.columns import ColumnType
from jobs.contracts.data import DataSpec, Task
from jobs.contracts.features import MAX_NGRAMS, MIN_ROWS, ColumnPlan, input_blocks, plan_columns
from jobs.contracts.file_limits import DEFAULT_LIMITS, FileLimits
from jobs.contracts.profile import Column, Profile
from workers.engine.arrays import Array
from workers.engine.data import statistics
from workers.engine.data.encode import encode_target
from workers.engine.data.expansion import check_expanded
from workers.engine.data.schema import ColumnSchema, Schema
from workers.engine.errors import BadSpec
from workers.features.ngrams import MIN_TEXTS, frequencies

MAX_VALUES = 100
"""Maximum number of values of a category in a profile, the most frequent first."""
MAX_VALUE_CHARACTERS = 100
NUMBER_BYTES = 4


class TableTarget(NamedTuple):
    """The encoded target of a table; see `encode.encode_target`."""

    y: Array
    task: Task
    class_labels: tuple[str, ...]

    @property
    def outputs(self) -> int:
        """Number of classes, of labels, or of target columns."""
        return len(self.class_labels) if self.class_labels else int(self.y.shape[1])


def make_table_profile(schema: Schema, target: TableTarget, limits: FileLimits) -> Profile:
    """Return the profile of a table.

    Args:
        schema: the table with the roles and types of its columns.
        target: the encoded target.
        limits: how many bytes the encoded features may have.

    Raises:
        BadData: the encoded features would be too large.
    """
    table = schema.table
    columns = [describe(name, table.columns[name], column) for name, column in schema.columns.items()]
    plans = plan_columns([column for column in columns if column.role == "feature"], {})
    width = sum(plan.positions for plan in plans)
    check_expanded("the table with its columns encoded", table.rows * width * NUMBER_BYTES, limits)
    used = [*schema.features, schema.target]
    duplicates = statistics.count_equal_rows([table.columns[name] for name in used])
    counts = statistics.class_counts(target.y, target.task, target.outputs)
    return Profile(
        rows=table.rows,
        kind="vector",
        task=target.task,
        target=schema.target,
        features=schema.features,
        input_shape=(width,),
        has_pipeline=True,
        blocks=input_blocks(plans),
        outputs=target.outputs,
        class_labels=target.class_labels,
        class_counts=counts,
        columns=tuple(columns),
        dialect=table.dialect,
        bad_rows=table.bad_rows,
        preview=statistics.preview(table),
        duplicates=duplicates,
        findings=(
            *left_out(schema.columns),
            *statistics.find_issues(
                table,
                target=schema.target,
                features=schema.features,
                class_labels=target.class_labels,
                class_counts=counts,
                duplicates=duplicates,
            ),
        ),
    )


def left_out(columns: Mapping[str, ColumnSchema]) -> list[str]:
    """Return a sentence for each column that is not a feature."""
    return [
        f"Column {name!r} is left out of the features: {column.reason}."
        for name, column in columns.items()
        if column.reason is not None
    ]


def describe(name: str, column: Array, schema: ColumnSchema) -> Column:
    """Return role, type and statistics of a column."""
    found = statistics.describe_column(name, column).model_copy(
        update={"role": schema.role, "type": schema.type, "reason": schema.reason}
    )
    return found.model_copy(update=_of_values(column, schema.type))


def _of_values(column: Array, kind: ColumnType) -> dict[str, object]:
    """Return the counts of a column from which its encoding is planned, and its most frequent values."""
    if kind == "text":
        found = frequencies(column.tolist(), "words")
        often = sum(1 for number in found.values() if number >= MIN_TEXTS)
        return {"ngrams": min(max(often, 1), MAX_NGRAMS)}
    if kind not in ("category", "integer"):
        return {}
    counts = Counter(column.tolist())
    counts.pop("", None)
    frequent = sum(1 for number in counts.values() if number >= MIN_ROWS)
    if kind == "integer":
        return {"frequent": frequent}
    values = [word for word, _ in counts.most_common(MAX_VALUES) if len(word) <= MAX_VALUE_CHARACTERS]
    return {"distinct": len(counts), "frequent": frequent, "values": tuple(values)}


class Selection(NamedTuple):
    """The columns that an experiment selects of a table: their encoding, the target, and the new profile."""

    plans: tuple[ColumnPlan, ...]
    target: TableTarget
    profile: Profile


def select(columns: Mapping[str, Array], y: Array, profile: Profile, spec: DataSpec) -> Selection:
    """Return the columns that a spec selects of a table, and a profile that describes them.

    Args:
        columns: the stored columns by name.
        y: the stored target, encoded for the roles in the profile.
        profile: of the table.
        spec: target, features, task and preprocessing.

    Raises:
        BadSpec: a column does not exist, or an option does not fit its type or makes the input too large.
        BadData: the target cannot be used.
    """
    target = spec.target or profile.target
    chosen = _chosen(profile, spec, target)
    try:
        plans = plan_columns(chosen, spec.preprocessing)
    except ValueError as error:
        raise BadSpec(str(error)) from error
    width = _checked_width(plans, profile)
    task = spec.task or (profile.task if target == profile.target else None)
    if (target, task) == (profile.target, profile.task):
        encoded = TableTarget(y, profile.task, profile.class_labels)
    else:
        encoded = TableTarget(*encode_target(target, columns[target], task))
    described = profile.model_copy(
        update={
            "task": encoded.task,
            "target": target,
            "features": tuple(column.name for column in chosen),
            "input_shape": (width,),
            "blocks": input_blocks(plans),
            "outputs": encoded.outputs,
            "class_labels": encoded.class_labels,
        }
    )
    return Selection(plans, encoded, described)


def _checked_width(plans: Sequence[ColumnPlan], profile: Profile) -> int:
    """Return the number of positions of the input.

    Raises:
        BadSpec: all rows together would be too large.
    """
    width = sum(plan.positions for plan in plans)
    size = profile.rows * width * NUMBER_BYTES
    # An administrator may have allowed more for the profile.
    most = max(DEFAULT_LIMITS.expanded_bytes, profile.rows * profile.input_shape[0] * NUMBER_BYTES)
    if size > most:
        raise BadSpec(
            f"the columns, encoded as data.preprocessing asks, have {size:,} bytes; at most {most:,} are "
            "used. Choose embedding or hash for columns with many values"
        )
    return width


def _chosen(profile: Profile, spec: DataSpec, target: str) -> list[Column]:
    known = {column.name: column for column in profile.columns}
    names: Sequence[str] = spec.features or [
        # The profile's target is an ordinary column if the experiment predicts another one.
        name
        for name, column in known.items()
        if column.role in ("feature", "target")
    ]
    for name in (target, *names, *spec.preprocessing):
        if name not in known:
            raise BadSpec(f"no column {name!r} in the data set; the columns are {', '.join([*known][:20])}")
    if spec.features and target in spec.features:
        raise BadSpec(f"{target!r} is the target and cannot also be a feature")
    return [known[name] for name in names if name != target]
