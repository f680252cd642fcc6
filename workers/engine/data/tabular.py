"""Describes a table for its profile, and turns its columns into arrays for a training."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from jobs.spec.data.column_plans import ColumnPlan, input_blocks, input_shape, plan_columns
from jobs.spec.data.columns import ColumnType, TextEncode
from jobs.spec.data.encoding import (
    NUMBER_BYTES,
    feature_names,
    size_refusal,
    width_in_memory,
    windowed,
)
from jobs.spec.data.features import MAX_NGRAMS, MIN_ROWS
from jobs.spec.data.file_limits import FileLimits
from jobs.spec.data.images import IMAGE, ImageStatistics
from jobs.spec.data.offers import Offer
from jobs.spec.data.profile import Column, Profile
from jobs.spec.data.windows import is_windowed
from jobs.spec.sections.data import DataSpec, Task
from workers.engine.arrays import Array
from workers.engine.data import statistics
from workers.engine.data.dates.far_dates import FarDates, find_far_dates
from workers.engine.data.dates.findings import DateFindings, find_date_issues
from workers.engine.data.encode import encode_target
from workers.engine.data.expansion import check_expanded
from workers.engine.data.findings.doubts import sentences_on_decimals
from workers.engine.data.findings.folded import fold
from workers.engine.data.findings.long_names import LongNames
from workers.engine.data.findings.ordered_offers import OrderedOffers, order_offers
from workers.engine.data.findings.sentinels import offer_sentinels
from workers.engine.data.findings.small_floats import find_lost_numbers
from workers.engine.data.findings.writings import count_values
from workers.engine.data.garbled import find_garbled
from workers.engine.data.image_files.images import ImageTable, count_equal_images
from workers.engine.data.labels import seems_divided
from workers.engine.data.row_hashes import count_equal_rows
from workers.engine.data.schema import ColumnSchema, Schema, with_role
from workers.engine.data.spilled import words
from workers.engine.data.split import named_parts
from workers.engine.data.table import NUMBERS, Table
from workers.engine.errors import BadSpec
from workers.features.ngrams import MIN_TEXTS, frequencies, words_of

MAX_VALUES = 100
"""Maximum number of values of a category in a profile, the most frequent first."""
MAX_VALUE_CHARACTERS = 100
MIN_ROWS_OF_SERIES = 20
"""In fewer rows, dates may rise by chance."""
ROWS_IN_ORDER = 1_000
"""The order of the first rows is checked first: nearly every column fails there."""
WORDS_OF_A_TEXT = 20
USUAL_LENGTH = 95
"""Percentile of the numbers of words of texts: longer ones are cut if words are read in their order."""


class TableTarget(NamedTuple):
    """A table's encoded target; see `encode.encode_target`."""

    y: Array
    task: Task
    class_labels: tuple[str, ...]

    @property
    def outputs(self) -> int:
        """How many classes, labels or target columns there are."""
        return len(self.class_labels) if self.class_labels else int(self.y.shape[1])


def make_table_profile(
    schema: Schema, target: TableTarget, limits: FileLimits, pool: ThreadPoolExecutor
) -> Profile:
    """Return a table's profile.

    Args:
        schema: the table with its column roles and types.
        target: the encoded target.
        limits: how many bytes the encoded features may have.
        pool: its threads describe one column each.

    Raises:
        BadData: the encoded features would be too large.
    """
    table = schema.table
    columns, images = _described(schema, pool)
    plans = plan_columns([column for column in columns if column.role == "feature"], {})
    if images is None:
        size = table.rows * sum(plan.positions for plan in plans) * NUMBER_BYTES
        check_expanded("the table with its columns encoded", size, limits.of_large_tables())
    duplicates = _count_duplicates(schema, target)
    counts = statistics.class_counts(target.y, target.task, target.outputs)
    offers, findings = _offers_and_findings(schema, target)
    issues = statistics.find_issues(
        table,
        target=schema.target,
        features=schema.features,
        class_labels=target.class_labels,
        class_counts=counts,
        duplicates=duplicates,
        distinct={column.name: _values_of(column) for column in columns},
    )
    long_names = LongNames(table.columns)
    return Profile(
        rows=table.rows,
        kind="vector" if images is None else "image",
        task=target.task,
        target=schema.target,
        features=schema.features,
        input_shape=input_shape(plans),
        has_pipeline=True,
        blocks=input_blocks(plans),
        weight=with_role(schema.columns, "weight"),
        part_rows=named_parts(with_role(schema.columns, "split"), schema.table.columns),
        outputs=target.outputs,
        class_labels=target.class_labels,
        class_counts=counts,
        columns=columns,
        dialect=table.dialect,
        file=table.file,
        bad_rows=table.bad_rows,
        images=images,
        preview=statistics.preview(table if images is None else _scalars(table)),
        duplicates=duplicates,
        findings=tuple(map(long_names.cut, fold((*findings, *issues)))),
        offers=tuple(map(long_names.cut_in, offers)),
    )


def _offers_and_findings(schema: Schema, target: TableTarget) -> tuple[Sequence[Offer], tuple[str, ...]]:
    """Return offers to read columns otherwise, and the sentences on how file and columns were read."""
    columns = schema.table.columns
    dates = find_date_issues(columns, schema.columns)
    far = find_far_dates(columns, schema.columns)
    sentinels = offer_sentinels(columns, schema.columns)
    ordered = order_offers(schema, [*dates.offers, *far.offers, *sentinels], target.y, target.task)
    return ordered.offers, _findings(schema, ordered, (dates, far), target.task)


def _described(schema: Schema, pool: ThreadPoolExecutor) -> tuple[tuple[Column, ...], ImageStatistics | None]:
    """Return the description of each column, and that of all images if it is a table of images."""
    table = schema.table
    columns = tuple(
        pool.map(lambda name: describe(name, table.columns, schema.columns[name]), schema.columns)
    )
    if not isinstance(table, ImageTable):
        return columns, None
    shape = table.statistics.shape
    with_shape = (
        column.model_copy(update={"image": shape}) if column.type == "image" else column for column in columns
    )
    return tuple(with_shape), table.statistics


def _findings(
    schema: Schema, ordered: OrderedOffers, dates: tuple[DateFindings, FarDates], task: Task
) -> tuple[str, ...]:
    """Return the sentences on how the file and its columns were read."""
    answered = {offer.change.name for offer in ordered.offers if offer.change.role == "feature"}
    numbers = (*schema.features, schema.target) if task == "regression" else schema.features
    return (
        *schema.table.findings,
        *schema.findings,
        *ordered.sentences,
        *left_out(schema.columns, answered=answered),
        *find_garbled(schema.table.columns),
        *_several_labels(schema, task),
        *_in_order_of_time(schema),
        *(sentence for found in dates for sentence in found.sentences),
        *sentences_on_decimals(schema),
        *find_lost_numbers(schema.table.columns, numbers),
    )


def _values_of(column: Column) -> int | None:
    """Return how many different values there are, with a missing one, which is no category's value."""
    if column.distinct is None or column.type != "category":
        return column.distinct
    return column.distinct + bool(column.missing)


def _count_duplicates(schema: Schema, target: TableTarget) -> int:
    columns = schema.table.columns
    if isinstance(schema.table, ImageTable):
        return count_equal_images(columns[IMAGE], target.y)
    return count_equal_rows(columns[name] for name in (*schema.features, schema.target))


def _scalars(table: Table) -> Table:
    """Return a table without images, which a preview has as thumbnails."""
    return Table({name: column for name, column in table.columns.items() if column.ndim == 1})


def _several_labels(schema: Schema, task: Task) -> list[str]:
    """Return a hint if a target's classes seem to be label lists."""
    if task not in ("binary", "multiclass") or not seems_divided(schema.table.columns[schema.target]):
        return []
    return [
        f"Values of the target {schema.target!r} contain ; or |, or are lists. If they are several labels in "
        "a row, choose the task multilabel."
    ]


def _in_order_of_time(schema: Schema) -> list[str]:
    """Return a hint if the rows follow a date: rows between training rows are easier to predict."""
    if any(column.role in ("time", "split") for column in schema.columns.values()):
        return []
    for name in schema.features:
        dates = schema.table.columns[name]
        if schema.columns[name].type == "date" and _rises(dates[:ROWS_IN_ORDER]) and _rises(dates):
            return [
                f"Rows follow each other in the order of column {name!r}. If they are a time series, give it "
                "the role time: then the oldest rows train and the newest test."
            ]
    return []


def _rises(dates: Array) -> bool:
    """Return whether no date is before the one above it, and most are after it."""
    if len(dates) < MIN_ROWS_OF_SERIES or np.isnat(dates).any():
        return False
    above, below = dates[:-1], dates[1:]
    return bool((below >= above).all()) and bool((below > above).mean() > 1 / 2)


def left_out(columns: Mapping[str, ColumnSchema], answered: Collection[str] = ()) -> list[str]:
    """Return a sentence for each column that is not a feature, and one for all after the first ones.

    Args:
        columns: role and type by name.
        answered: the columns whose offer has this sentence already.
    """
    reasons = {
        name: column.reason
        for name, column in columns.items()
        if column.reason is not None and name not in answered
    }
    named = list(reasons.items())[: statistics.MOST_NAMED]
    sentences = [f"Column {name!r} is left out of the features: {reason}." for name, reason in named]
    if more := len(reasons) - len(named):
        sentences.append(
            f"{more:,} more columns are left out of the features; the table of columns has each reason."
        )
    return sentences


def describe(name: str, columns: Mapping[str, Array], schema: ColumnSchema) -> Column:
    """Return a column's role, type and statistics."""
    names = ("role", "type", "reason", "number_format", "gap_words", "misfits")
    described_by = {name: getattr(schema, name) for name in names}
    described_by["merge_labels"] = bool(schema.merge_labels)
    described_by["gap_counts"] = dict(schema.gap_counts)
    if schema.type == "date" and schema.dates is not None:
        described_by |= {"date_format": schema.dates.format, "misfits": schema.dates.misfits}
    category_words = words(columns, name) if schema.type == "category" else None
    if category_words is not None:
        counts = category_words.counts()
        described = Column(name=name, dtype="text", missing=counts[""])
        return described.model_copy(update=described_by | _of_categories(counts))
    column = columns[name]
    if schema.type == "image":
        return statistics.describe_pixels(name, column).model_copy(update={"role": schema.role})
    if column.dtype.kind in NUMBERS:
        return _of_numbers(name, column, schema.type).model_copy(update=described_by)
    counted: dict[str, object] = {}
    if schema.type == "category":
        counted = _of_categories(count_values(column))
    elif schema.type == "text":
        counted = _of_texts(column)
    distinct = counted.get("distinct")
    described = statistics.describe_column(name, column, distinct if isinstance(distinct, int) else None)
    return described.model_copy(update=described_by | counted)


def _of_numbers(name: str, column: Array, kind: ColumnType) -> Column:
    ordered = statistics.ascending(column)
    described = statistics.describe_numbers(name, column, ordered)
    if kind != "integer":
        return described
    return described.model_copy(update={"frequent": statistics.count_distinct(ordered.values, MIN_ROWS)})


def _of_categories(counts: Counter[str]) -> dict[str, object]:
    """Return the counts from which a category's encoding is planned, and its most frequent values."""
    counts.pop("", None)
    frequent = sum(1 for number in counts.values() if number >= MIN_ROWS)
    values = [word for word, _ in counts.most_common(MAX_VALUES) if len(word) <= MAX_VALUE_CHARACTERS]
    return {"distinct": len(counts), "frequent": frequent, "values": tuple(values)}


def _of_texts(column: Array) -> dict[str, object]:
    """Return the counts for texts: n-grams, words, the length range; and the most frequent words."""
    frequency = frequencies(column.tolist(), "words")
    often = [name for name, number in frequency.items() if number >= MIN_TEXTS]
    words = sorted((-number, word) for word, number in frequency.items() if " " not in word)
    frequent_words = tuple(word for _, word in words[:WORDS_OF_A_TEXT] if len(word) <= MAX_VALUE_CHARACTERS)
    lengths = np.strings.str_len(column[column != ""])
    measured = statistics.of_numbers(lengths.astype(np.float64)) if len(lengths) else {}
    return {
        "ngrams": min(max(len(often), 1), MAX_NGRAMS),
        "vocabulary": max(sum(1 for name in often if " " not in name), 1),
        "length": _usual_length(column),
        "values": frequent_words,
        **measured,
    }


def _usual_length(texts: Array) -> int:
    """Return the word count that 95 % of the texts with words do not exceed."""
    lengths = [length for text in texts.tolist() if (length := len(words_of(text)))]
    return int(np.percentile(lengths, USUAL_LENGTH, method="higher")) if lengths else 1


class Selection(NamedTuple):
    """The columns that an experiment selects from a table: encoding, target, and new profile."""

    plans: tuple[ColumnPlan, ...]
    target: TableTarget
    profile: Profile


def select(
    columns: Mapping[str, Array], y: Array, profile: Profile, spec: DataSpec, texts: TextEncode = "words"
) -> Selection:
    """Return the columns that a spec selects from a table, and a profile that describes them.

    Args:
        columns: the stored columns by name.
        y: the stored target, encoded for the roles in the profile.
        profile: the table's profile.
        spec: target, features, task and preprocessing.
        texts: the text encoding where the spec chooses none.

    Raises:
        BadSpec: a column does not exist, or an option does not fit its type or makes the input too large.
        BadData: the target cannot be used.
    """
    target = spec.target or profile.target
    chosen = _chosen(profile, spec, target)
    if any(column.name == target and column.type == "image" for column in profile.columns):
        raise BadSpec(f"{target!r} holds the images and cannot be the target")
    plans = _plans(chosen, spec, texts)
    _check_width(plans, profile, spec)
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
            "input_shape": input_shape(plans),
            "blocks": input_blocks(plans),
            "outputs": encoded.outputs,
            "class_labels": encoded.class_labels,
            **(windowed(spec.window, plans) if is_windowed(spec, profile) else {}),
        }
    )
    return Selection(plans, encoded, described)


def encoded_bytes(profile: Profile, spec: DataSpec, texts: TextEncode = "words") -> int:
    """Return how large all table rows are in memory, encoded as a spec selects; see `select`.

    Raises:
        BadSpec: a column does not exist, or an option does not fit its type.
    """
    plans = _plans(_chosen(profile, spec, spec.target or profile.target), spec, texts)
    return profile.rows * _width_in_memory(plans, spec) * NUMBER_BYTES


def _plans(chosen: Sequence[Column], spec: DataSpec, texts: TextEncode) -> tuple[ColumnPlan, ...]:
    try:
        return plan_columns(chosen, spec.preprocessing, texts)
    except ValueError as error:
        raise BadSpec(str(error)) from error


def _width_in_memory(plans: Sequence[ColumnPlan], spec: DataSpec) -> int:
    return width_in_memory(sum(plan.positions for plan in plans), spec.window)


def _check_width(plans: Sequence[ColumnPlan], profile: Profile, spec: DataSpec) -> None:
    """Check how many positions the input has.

    Raises:
        BadSpec: all rows together would be too large.
    """
    if (refusal := size_refusal(_width_in_memory(plans, spec), profile)) is not None:
        raise BadSpec(refusal)


def _chosen(profile: Profile, spec: DataSpec, target: str) -> list[Column]:
    by_name = {column.name: column for column in profile.columns}
    names = feature_names(spec, profile)
    for name in (target, *names, *spec.preprocessing):
        if name not in by_name:
            raise BadSpec(f"no column {name!r} in the data set; the columns are {', '.join([*by_name][:20])}")
    if spec.features and target in spec.features:
        raise BadSpec(f"{target!r} is the target and cannot also be a feature")
    if profile.weight is not None and profile.weight in (target, *names):
        raise BadSpec(f"{profile.weight!r} has the role weight and cannot also be a feature or the target")
    return [by_name[name] for name in names]
