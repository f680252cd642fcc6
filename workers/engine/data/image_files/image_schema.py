"""Gives the columns from an image archive their roles and types."""

from collections.abc import Sequence
from dataclasses import replace

from jobs.spec.data.columns import ColumnRequest
from jobs.spec.data.images import FILE, IMAGE
from workers.engine.arrays import Array
from workers.engine.data.findings.writings import merge
from workers.engine.data.image_files.image_labels import FOLDER, LABEL, choose_label
from workers.engine.data.image_files.images import ImageTable
from workers.engine.data.reading.column_types import TypedColumn
from workers.engine.data.reading.typed_columns import read_column
from workers.engine.data.schema import ColumnSchema, Schema, merged_groups
from workers.engine.data.texts import is_text
from workers.engine.errors import BadData

WHOLE_INPUT = "the image is the whole input of the model"


def propose_images(
    table: ImageTable,
    *,
    target: str | None,
    features: Sequence[str] | None,
    requests: Sequence[ColumnRequest] = (),
) -> Schema:
    """Return each column's role and type: the image is the only feature.

    Args:
        table: as it was read.
        target: the target's name; see `choose_label`.
        features: the feature names, if a person chose them.
        requests: roles and types that a person chose: only that of the target.

    Raises:
        BadData: another column is requested as a feature, or other roles or types.
    """
    if features is not None and tuple(features) != (IMAGE,):
        raise BadData(f"the features are {', '.join(features)}; {WHOLE_INPUT}, so the only one is {IMAGE!r}")
    target = choose_label(table.columns, target or requested_target(requests))
    if target == IMAGE:
        raise BadData(f"column {IMAGE!r} holds the images and cannot be the target")
    typed: dict[str, Array] = {}
    findings: list[str] = []
    schema: dict[str, ColumnSchema] = {}
    for name, column in table.columns.items():
        read = _typed(name, table, is_target=name == target)
        typed[name] = column if read.values is None else read.values
        schema[name] = ColumnSchema("ignore", read.type, WHOLE_INPUT, dates=read.dates)
        if name == target:
            # Types in an archive are fixed, so other readings are no offers.
            findings.extend((*read.findings, *(offer.finding for offer in read.offers)))
    schema[IMAGE] = ColumnSchema("feature", "image")
    schema[FILE] = ColumnSchema("id", "category", "it is the path of each image")
    schema[target] = ColumnSchema("target", schema[target].type)
    for request in requests:
        if request.name == target and (groups := merged_groups(typed, request, schema[target].type)):
            typed[target] = merge(typed, target, groups)
            schema[target] = replace(schema[target], merge_labels=True, merged=groups)
    return Schema(replace(table, columns=typed), schema, target, tuple(findings))


def requested_target(requests: Sequence[ColumnRequest]) -> str | None:
    """Return the column that was given the role target.

    Raises:
        BadData: another role, or a type, was requested.
    """
    for request in requests:
        if request.role not in (None, "target") or request.type is not None:
            raise BadData(
                f"column {request.name!r}: an archive of images has fixed roles and types; only the target "
                "can be chosen"
            )
    return next((request.name for request in requests if request.role == "target"), None)


def _typed(name: str, table: ImageTable, *, is_target: bool) -> TypedColumn:
    if name == IMAGE:
        return TypedColumn(None, "image")
    # Names of files and folders are no numbers and no dates, also if they look like these.
    if name in (FILE, FOLDER) or (name == LABEL and is_text(table.columns[name])):
        return TypedColumn(None, "category")
    return read_column(name, table.columns, ColumnRequest(name=name), table, is_target=is_target)
