"""Creates a version from the same file with other column roles and types, or another dialect."""

from dataclasses import replace
from typing import Any

from django.http import HttpResponse, QueryDict
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.actions.data import dataset_roles
from jobs.actions.data import datasets as actions
from jobs.actions.data.datasets import Roles
from jobs.errors import BadInput
from jobs.models import DatasetVersion
from jobs.spec.data.dates.formats import check_date_format
from jobs.spec.data.dialect import DialectRequest, ReadOptions
from jobs.spec.data.images import ImageOptions
from jobs.spec.problems import Problem
from webapp.forms.data import dialects
from webapp.forms.data import images as image_options
from webapp.pages.data.dataset_lookup import dataset_of, home_of
from webapp.pages.data.version_settings import has_dialect
from webapp.pages.shortcuts import Request, action, notify, redirect, url


@action
def set_roles(request: Request, slug: str, number: int) -> HttpResponse:
    """Create a version from the same file with other column roles and types."""
    dataset = dataset_of(request, slug, Action.WRITE)
    version = access.get_dataset_version(request.user, slug, number, dataset.project, Action.WRITE)
    entries = request.POST
    dialect = _chosen_dialect(entries, version)
    columns = (
        _corrected_columns(entries, version)
        if dialect is None
        else _columns_read_again(entries, version, dialect)
    )
    roles = Roles.read(
        entries.get("target", ""),
        entries.get("features", ""),
        entries.get("task", ""),
        columns,
        # The choice stays with the file.
        version.request.get("rows_without_target", ""),
    )
    images = _chosen_images(entries, version)
    share = _chosen_share(entries)
    new_version = dataset_roles.set_roles(
        version, roles, by=request.user, dialect=dialect, images=images, max_bad_share=share
    )
    notify(request, f"{new_version} is read with these settings by a worker.")
    return redirect(url("dataset_version", slug, new_version.number, project=home_of(dataset)))


def _chosen_share(entries: QueryDict) -> float | None:
    """Return the accepted share of damaged rows. Only a version that could not be read has this field."""
    share = entries.get("max_bad_share")
    return None if share is None else actions.read_options({}, share).max_bad_share


def _chosen_images(entries: QueryDict, version: DatasetVersion) -> ImageOptions | None:
    """Return the image size in the form; None for versions with other data."""
    if version.request.get("source") != "images":
        return None
    return actions.read_options({}, images=image_options.read_image_options(entries)).images


def _chosen_dialect(entries: QueryDict, version: DatasetVersion) -> DialectRequest | None:
    """Return the dialect in the form if it differs from that with which the version was read; else None."""
    if not has_dialect(version) or not any(name.startswith(dialects.PREFIX) for name in entries):
        return None
    chosen = actions.read_options(dialects.read_dialect(entries)).dialect
    before = ReadOptions.model_validate(version.request.get("reading", {})).dialect
    profile = version.profile
    detected: dict[str, Any] = dict(before)
    if profile is not None:
        detected |= {**dict(profile.dialect or ()), "sheet": profile.file.sheet if profile.file else None}
    for name in DialectRequest.model_fields:
        value = getattr(chosen, name)
        # Without a choice it is detected, as before if there was none before either.
        if value != (getattr(before, name) if value is None else detected[name]):
            return chosen
    return None


def _columns_read_again(
    entries: QueryDict, version: DatasetVersion, dialect: DialectRequest
) -> list[dict[str, Any]]:
    """Return the corrections that remain if the file is read with another dialect.

    Types are always proposed again. Another delimiter, encoding or header may give the columns other names,
    so roles remain only if nothing but the decimal sign has changed.
    """
    before = ReadOptions.model_validate(version.request.get("reading", {})).dialect
    if dialect.model_copy(update={"decimal": before.decimal}) != before:
        return []
    columns = _corrected_columns(entries, version)
    return [{name: value for name, value in column.items() if name != "type"} for column in columns]


def _corrected_columns(entries: QueryDict, version: DatasetVersion) -> list[dict[str, Any]]:
    """Return the columns corrected on this page, and the earlier corrections to other columns."""
    profile = version.profile
    edited = _edited_columns(entries, version)
    edited = [{**_rules_of(version, column), **column} for column in edited]
    names = {column["name"] for column in edited}
    others = [column for column in actions.stored_columns(version) if column["name"] not in names]
    if edited and profile is not None and profile.target not in names:
        # The target is on another page of the table. It keeps its role unless another column has it now. The
        # form of an array has a field for the target; if that is empty, the target is detected.
        others = [column for column in others if column["name"] != profile.target]
        if profile.has_pipeline and all(column.get("role") != "target" for column in edited):
            others.append({"name": profile.target, "role": "target"})
    return [*others, *edited]


def _rules_of(version: DatasetVersion, column: dict[str, Any]) -> dict[str, Any]:
    """Return how a column's texts are read, as chosen earlier, if its type stays.

    The form has no fields for these rules.
    """
    described = version.profile.columns if version.profile is not None else ()
    types = {each.name: each.type for each in described}
    before = next((each for each in actions.stored_columns(version) if each["name"] == column["name"]), None)
    # A version that could not be read has the types of its request alone.
    if before is None or types.get(column["name"], before.get("type")) != column.get("type"):
        return {}
    return {name: before[name] for name in ("number_format", "gap_words", "merge_labels") if name in before}


def _edited_columns(entries: QueryDict, version: DatasetVersion) -> list[dict[str, Any]]:
    """Return the column roles and types in the table; the button "Include" makes a column a feature.

    Raises:
        BadInput: several columns are the target, or none, although the present one is on this page; or a date
            format is none.
    """
    target = version.profile.target if version.profile is not None else None
    formats = _stated_formats(entries, version)
    lists = (entries.getlist(name) for name in ("column", "role", "type"))
    columns: list[dict[str, Any]] = [
        {"name": name}
        | ({"role": "feature" if name == entries.get("include") else role} if role else {})
        | ({"type": kind} if kind else {})
        | ({"date_format": formats[name]} if kind == "date" and name in formats else {})
        for name, role, kind in zip(*lists, strict=False)
    ]
    targets = [column["name"] for column in columns if column.get("role") == "target"]
    names = {column["name"] for column in columns}
    if len(targets) > 1 or (not targets and target in names):
        named = ", ".join(targets) or "no column"
        message = f"Give exactly one column the role target; now it is {named}."
        raise BadInput(message, [Problem("/role", message)])
    return columns


def _stated_formats(entries: QueryDict, version: DatasetVersion) -> dict[str, str]:
    """Return the date formats that a person has stated, by column; those that were recognized remain so.

    Raises:
        BadInput: one is no date format.
    """
    profile = version.profile
    recognized = {column.name: column.date_format for column in profile.columns} if profile else {}
    before = {column["name"] for column in actions.stored_columns(version) if "date_format" in column}
    stated = {}
    kinds = entries.getlist("type")
    for name, kind, text in zip(
        entries.getlist("column"), kinds, entries.getlist("date_format"), strict=False
    ):
        form = text.strip()
        if kind != "date" or not form or (form == recognized.get(name) and name not in before):
            continue
        try:
            stated[name] = check_date_format(form)
        except ValueError as error:
            message = f"Column {name!r}: {error}."
            raise BadInput(message, [Problem("/date_format", message)]) from error
    return stated


@action
def leave_out_gaps(request: Request, slug: str, number: int) -> HttpResponse:
    """Create a version from the same file without the rows that have no target."""
    dataset = dataset_of(request, slug, Action.WRITE)
    version = access.get_dataset_version(request.user, slug, number, dataset.project, Action.WRITE)
    roles = replace(Roles.requested_for(version), rows_without_target="leave_out")
    new_version = dataset_roles.set_roles(version, roles, by=request.user)
    notify(request, f"{new_version} is read by a worker, without the rows that have no target.")
    return redirect(url("dataset_version", slug, new_version.number, project=home_of(dataset)))


@action
def accept_offer(request: Request, slug: str, number: int, position: int) -> HttpResponse:
    """Create a version from the same file with the change that a finding offers."""
    dataset = dataset_of(request, slug, Action.WRITE)
    version = access.get_dataset_version(request.user, slug, number, dataset.project, Action.WRITE)
    return _accept(request, version, [position])


@action
def accept_offers(request: Request, slug: str, number: int) -> HttpResponse:
    """Create one version from the same file with all marked changes."""
    dataset = dataset_of(request, slug, Action.WRITE)
    version = access.get_dataset_version(request.user, slug, number, dataset.project, Action.WRITE)
    # A text that is no number is the place of no offer.
    places = [
        int(text) if text.isdecimal() and len(text) < 9 else -1 for text in request.POST.getlist("offer")
    ]
    return _accept(request, version, places)


def _accept(request: Request, version: DatasetVersion, positions: list[int]) -> HttpResponse:
    read = dataset_roles.accept_offers(version, positions, by=request.user)
    if read.number == version.number:
        notify(request, f"Recorded. {version} was read so, and stays as it is.")
    else:
        many = "this change" if len(positions) == 1 else f"these {len(positions)} changes"
        notify(request, f"{read} is read with {many} by a worker.")
    place = url("dataset_version", version.dataset.slug, read.number, project=home_of(version.dataset))
    return redirect(place)


urls = [
    path("datasets/<slug:slug>/versions/<int:number>/roles", set_roles, name="dataset_roles"),
    path("datasets/<slug:slug>/versions/<int:number>/gaps", leave_out_gaps, name="dataset_gaps"),
    path(
        "datasets/<slug:slug>/versions/<int:number>/offers/<int:position>",
        accept_offer,
        name="dataset_offer",
    ),
    path("datasets/<slug:slug>/versions/<int:number>/offers", accept_offers, name="dataset_offers"),
]
