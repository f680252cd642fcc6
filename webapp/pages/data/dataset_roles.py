"""Creates a version of the same file with other roles and types of columns, or another dialect."""

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
    """Create a version of the same file with other roles and types of columns."""
    dataset = dataset_of(request, slug, Action.WRITE)
    version = access.get_dataset_version(request.user, slug, number, dataset.project, Action.WRITE)
    given = request.POST
    dialect = _chosen_dialect(given, version)
    columns = _columns(given, version) if dialect is None else _columns_read_again(given, version, dialect)
    roles = Roles.read(
        given.get("target", ""),
        given.get("features", ""),
        given.get("task", ""),
        columns,
        # The choice stays with the file.
        version.request.get("rows_without_target", ""),
    )
    images = _chosen_images(given, version)
    share = _chosen_share(given)
    made = dataset_roles.set_roles(
        version, roles, by=request.user, dialect=dialect, images=images, max_bad_share=share
    )
    notify(request, f"{made} is read with these settings by a worker.")
    return redirect(url("dataset_version", slug, made.number, project=home_of(dataset)))


def _chosen_share(given: QueryDict) -> float | None:
    """Return the share of damaged rows in the form, which only a version that could not be read has."""
    share = given.get("max_bad_share")
    return None if share is None else actions.read_options({}, share).max_bad_share


def _chosen_images(given: QueryDict, version: DatasetVersion) -> ImageOptions | None:
    """Return the size of the images in the form; None for versions of other data."""
    if version.request.get("source") != "images":
        return None
    return actions.read_options({}, images=image_options.read(given)).images


def _chosen_dialect(given: QueryDict, version: DatasetVersion) -> DialectRequest | None:
    """Return the dialect in the form if it differs from that with which the version was read; else None."""
    if version.request.get("source") != "csv" or not any(name.startswith(dialects.PREFIX) for name in given):
        return None
    chosen = actions.read_options(dialects.read(given)).dialect
    before = ReadOptions.model_validate(version.request.get("reading", {})).dialect
    found = version.profile.dialect if version.profile is not None else None
    for name in DialectRequest.model_fields:
        value = getattr(chosen, name)
        # Without a choice it is detected, as before if there was none before either.
        if value != getattr(before if value is None else found or before, name):
            return chosen
    return None


def _columns_read_again(
    given: QueryDict, version: DatasetVersion, dialect: DialectRequest
) -> list[dict[str, str]]:
    """Return what remains of the corrections if the file is read with another dialect.

    Types are always proposed again. Another delimiter, encoding or header may give the columns other names,
    so roles remain only if nothing but the decimal sign has changed.
    """
    before = ReadOptions.model_validate(version.request.get("reading", {})).dialect
    if dialect.model_copy(update={"decimal": before.decimal}) != before:
        return []
    columns = _columns(given, version)
    return [{name: value for name, value in column.items() if name != "type"} for column in columns]


def _columns(given: QueryDict, version: DatasetVersion) -> list[dict[str, str]]:
    """Return the columns that were corrected on this page of the table, and those that were before."""
    profile = version.profile
    edited = _edited_columns(given, profile.target if profile is not None else None)
    names = {column["name"] for column in edited}
    others = [column for column in version.request.get("columns", ()) if column["name"] not in names]
    if edited and profile is not None and profile.target not in names:
        # The target is on another page of the table. It keeps its role unless another column has it now. The
        # form of an array has a field for the target; if that is empty, the target is detected.
        others = [column for column in others if column["name"] != profile.target]
        if profile.has_pipeline and all(column["role"] != "target" for column in edited):
            others.append({"name": profile.target, "role": "target"})
    return [*others, *edited]


def _edited_columns(given: QueryDict, target: str | None) -> list[dict[str, str]]:
    """Return the roles and types of the table of columns; the button "Include" makes a column a feature.

    Raises:
        BadInput: several columns are the target, or none, although the present one is on this page.
    """
    lists = (given.getlist(name) for name in ("column", "role", "type"))
    columns = [
        {"name": name, "role": "feature" if name == given.get("include") else role, "type": kind}
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
    """Create a version of the same file without the rows that have no target."""
    dataset = dataset_of(request, slug, Action.WRITE)
    version = access.get_dataset_version(request.user, slug, number, dataset.project, Action.WRITE)
    roles = replace(Roles.of(version), rows_without_target="leave_out")
    made = dataset_roles.set_roles(version, roles, by=request.user)
    notify(request, f"{made} is read by a worker, without the rows that have no target.")
    return redirect(url("dataset_version", slug, made.number, project=home_of(dataset)))


urls = [
    path("datasets/<slug:slug>/versions/<int:number>/roles", set_roles, name="dataset_roles"),
    path("datasets/<slug:slug>/versions/<int:number>/gaps", leave_out_gaps, name="dataset_gaps"),
]
