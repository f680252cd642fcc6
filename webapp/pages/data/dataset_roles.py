"""Creates a version from the same file with other column roles and types, or another dialect."""

from dataclasses import replace

from django.http import HttpResponse, QueryDict
from django.urls import path

from jobs import access
from jobs.access import Action
from jobs.actions.data import dataset_roles
from jobs.actions.data import datasets as actions
from jobs.actions.data.datasets import Roles
from jobs.errors import BadInput
from jobs.models import DatasetVersion
from jobs.spec.data.dialect import DialectRequest, ReadOptions
from jobs.spec.data.images import ImageOptions
from jobs.spec.problems import Problem
from webapp.forms.data import dialects
from webapp.forms.data import images as image_options
from webapp.pages.data.dataset_lookup import dataset_of, home_of
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
    if version.request.get("source") != "csv" or not any(
        name.startswith(dialects.PREFIX) for name in entries
    ):
        return None
    chosen = actions.read_options(dialects.read_dialect(entries)).dialect
    before = ReadOptions.model_validate(version.request.get("reading", {})).dialect
    detected = version.profile.dialect if version.profile is not None else None
    for name in DialectRequest.model_fields:
        value = getattr(chosen, name)
        # Without a choice it is detected, as before if there was none before either.
        if value != getattr(before if value is None else detected or before, name):
            return chosen
    return None


def _columns_read_again(
    entries: QueryDict, version: DatasetVersion, dialect: DialectRequest
) -> list[dict[str, str]]:
    """Return the corrections that remain if the file is read with another dialect.

    Types are always proposed again. Another delimiter, encoding or header may give the columns other names,
    so roles remain only if nothing but the decimal sign has changed.
    """
    before = ReadOptions.model_validate(version.request.get("reading", {})).dialect
    if dialect.model_copy(update={"decimal": before.decimal}) != before:
        return []
    columns = _corrected_columns(entries, version)
    return [{name: value for name, value in column.items() if name != "type"} for column in columns]


def _corrected_columns(entries: QueryDict, version: DatasetVersion) -> list[dict[str, str]]:
    """Return the columns corrected on this page, and the earlier corrections to other columns."""
    profile = version.profile
    edited = _edited_columns(entries, profile.target if profile is not None else None)
    names = {column["name"] for column in edited}
    others = [column for column in version.request.get("columns", ()) if column["name"] not in names]
    if edited and profile is not None and profile.target not in names:
        # The target is on another page of the table. It keeps its role unless another column has it now. The
        # form of an array has a field for the target; if that is empty, the target is detected.
        others = [column for column in others if column["name"] != profile.target]
        if profile.has_pipeline and all(column["role"] != "target" for column in edited):
            others.append({"name": profile.target, "role": "target"})
    return [*others, *edited]


def _edited_columns(entries: QueryDict, target: str | None) -> list[dict[str, str]]:
    """Return the column roles and types in the table; the button "Include" makes a column a feature.

    Raises:
        BadInput: several columns are the target, or none, although the present one is on this page.
    """
    lists = (entries.getlist(name) for name in ("column", "role", "type"))
    columns = [
        {"name": name, "role": "feature" if name == entries.get("include") else role, "type": kind}
        for name, role, kind in zip(*lists, strict=False)
    ]
    targets = [column["name"] for column in columns if column["role"] == "target"]
    names = {column["name"] for column in columns}
    if len(targets) > 1 or (not targets and target in names):
        named = ", ".join(targets) or "no column"
        message = f"Give exactly one column the role target; now it is {named}."
        raise BadInput(message, [Problem("/role", message)])
    return columns


@action
def leave_out_gaps(request: Request, slug: str, number: int) -> HttpResponse:
    """Create a version from the same file without the rows that have no target."""
    dataset = dataset_of(request, slug, Action.WRITE)
    version = access.get_dataset_version(request.user, slug, number, dataset.project, Action.WRITE)
    roles = replace(Roles.requested_for(version), rows_without_target="leave_out")
    new_version = dataset_roles.set_roles(version, roles, by=request.user)
    notify(request, f"{new_version} is read by a worker, without the rows that have no target.")
    return redirect(url("dataset_version", slug, new_version.number, project=home_of(dataset)))


urls = [
    path("datasets/<slug:slug>/versions/<int:number>/roles", set_roles, name="dataset_roles"),
    path("datasets/<slug:slug>/versions/<int:number>/gaps", leave_out_gaps, name="dataset_gaps"),
]
