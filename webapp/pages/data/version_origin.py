"""Shows from which version one was made, with the changes, and how one that failed was requested."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from jobs.actions.data.datasets import stored_columns
from jobs.models import DatasetVersion
from jobs.spec.data.columns import ColumnRequest
from jobs.spec.name_lists import write_names
from webapp.template_context import Context

MOST_CHANGES = 5
SHOWN_COLUMNS = 100


class RequestedColumn(NamedTuple):
    """How a column was requested, and whether the message of the failure names it."""

    request: ColumnRequest
    is_named: bool


@dataclass(frozen=True)
class OriginSection(Context):
    """The version that a version was made from, the differences, and the columns of a failed request."""

    origin: DatasetVersion | None
    changes: str
    requested_columns: list[RequestedColumn]
    requested_features: str
    answered_findings: frozenset[str]


def origin_context(version: DatasetVersion) -> OriginSection:
    """Return the origin of a version, with the entries of its request for a correction if it has failed."""
    number = version.request.get("from_version")
    origin = version.dataset.versions.filter(number=number).first() if number is not None else None
    has_failed = version.state == DatasetVersion.State.FAILED
    return OriginSection(
        origin=origin,
        changes=_described_changes(origin, version) if origin is not None else "",
        requested_columns=_requested_columns(version) if has_failed else [],
        requested_features=write_names(version.request.get("features", ())) if has_failed else "",
        answered_findings=_answered_findings(version),
    )


def _answered_findings(version: DatasetVersion) -> frozenset[str]:
    """Return the findings on dates for which a person has chosen to keep how they were read."""
    stated = {column["name"]: column.get("date_format") for column in stored_columns(version)}
    offers = version.profile.offers if version.profile is not None else ()
    return frozenset(
        offer.finding
        for offer in offers
        if offer.change.date_format is not None and offer.change.date_format == stated.get(offer.change.name)
    )


def _requested_columns(version: DatasetVersion) -> list[RequestedColumn]:
    """Return the first requested columns, those before others that the message of the failure names."""
    message = str((version.error or {}).get("message", ""))
    columns = [
        RequestedColumn(ColumnRequest.model_validate(column), repr(column["name"]) in message)
        for column in stored_columns(version)
    ]
    return sorted(columns, key=lambda column: not column.is_named)[:SHOWN_COLUMNS]


def _described_changes(origin: DatasetVersion, version: DatasetVersion) -> str:
    """Describe the settings in which a version differs from its origin, such as "price as number"."""
    changes = [*_changed_columns(origin, version)]
    more = len(changes) - MOST_CHANGES
    named = changes[:MOST_CHANGES] + ([f"{more:,} more changes of columns"] if more > 0 else [])
    before, after = origin.request, version.request
    for name, sentence in (
        ("target", "another target"),
        ("features", "other features"),
        ("task", "another task"),
    ):
        if before.get(name) != after.get(name):
            named.append(sentence)
    if before.get("reading") != after.get("reading"):
        named.append("other settings of the file")
    if after.get("rows_without_target") == "leave_out" != before.get("rows_without_target"):
        named.append("without the rows that have no target")
    return ", ".join(named)


def _changed_columns(origin: DatasetVersion, version: DatasetVersion) -> Iterator[str]:
    """Yield the changes of columns: values that the origin neither requests nor has."""
    requested = {column["name"]: column for column in stored_columns(origin)}
    found = {column.name: column for column in origin.profile.columns} if origin.profile else {}
    for column in stored_columns(version):
        name = column["name"]
        before: Mapping[str, Any] = requested.get(name, {})
        request = ColumnRequest.model_validate(column)
        for field, value in column.items():
            is_known = value in (before.get(field), getattr(found.get(name), field, None))
            # A format implies the type.
            is_implied = field == "type" and (request.date_format or request.number_format) is not None
            if field != "name" and not is_known and not is_implied:
                yield f"{name} {_described(request, field)}"


def _described(request: ColumnRequest, field: str) -> str:
    match field:
        case "role":
            return f"in the role {request.role}"
        case "type":
            return f"as {request.type}"
        case "date_format":
            return f"as dates in the format {request.date_format}"
        case "number_format" if request.number_format is not None:
            return f"as numbers such as {request.number_format.example}"
        case "gap_words" if request.gap_words:
            return f"with {', '.join(map(repr, request.gap_words))} as missing"
        case "gap_words":
            return "with every word as a value"
        case _:
            return "with its writings merged" if request.merge_labels else "with its writings apart"
