"""Asks before a deletion and shows the loss; deletes and restores."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from django.http import HttpResponse
from django.urls import path, reverse

from jobs import access
from jobs.actions.storage import deletions as actions
from jobs.answers.storage.deletions import DeletionPreviewOut, ReferrerOut
from jobs.errors import InUse, NotFound
from jobs.models import CodeVersion, Dataset, Deletion, Experiment, Job, ModelVersion, Project, User
from jobs.queries.storage import deletions as queries
from jobs.queries.storage.deletion_scope import Deletable
from webapp.pages.shortcuts import (
    Crumbs,
    Request,
    action,
    crumbs,
    form_page,
    notify,
    redirect,
    render_page,
    url,
)
from webapp.template_context import Context

Kind = Deletion.Kind
# `target` is the primary key; an installation has few projects and data sets, so these two are looked up.
FIND: dict[str, Callable[[User, int], Deletable]] = {
    Kind.PROJECT: lambda user, target: _require_row(access.projects_of(user).filter(pk=target).first()),
    Kind.DATASET: lambda user, target: _require_row(access.visible_datasets(user).filter(pk=target).first()),
    Kind.EXPERIMENT: access.get_experiment,
    Kind.JOB: access.get_job,
    Kind.CODE: lambda user, target: _require_row(
        access.visible_code(user).select_related("project").filter(pk=target).first()
    ),
    Kind.VERSION: lambda user, target: _require_row(
        access.visible_versions(user).select_related("model__project").filter(pk=target).first()
    ),
}


def _require_row[R](row: R | None) -> R:
    if row is None:
        raise NotFound("There is nothing to delete here.")
    return row


@dataclass(frozen=True)
class DeletionPage(Context):
    """The rows and files that a deletion deletes, and the rows that prevent it."""

    preview: DeletionPreviewOut
    referrers: list[tuple[ReferrerOut, str]]
    back: str
    crumbs: Crumbs


@form_page
def deletion(request: Request, deletable: str, target: int) -> HttpResponse:
    """Show the loss before a deletion, or delete."""
    if deletable not in FIND:
        raise NotFound("There is nothing to delete here.")
    row = FIND[deletable](request.user, target)
    actions.require_deletable(row, by=request.user)
    if request.method == "POST":
        try:
            return _delete_row(request, row)
        except InUse:
            pass  # the page names what prevents it
    preview = queries.preview_out(row)
    context = DeletionPage(
        preview=preview,
        referrers=[(referrer, _address_of_referrer(referrer)) for referrer in preview.referrers],
        back=_address_of_row(row),
        crumbs=crumbs((preview.label[:1].upper() + preview.label[1:], _address_of_row(row)), "Delete"),
    )
    return render_page(
        request, "storage/deletion.html", context, status=409 if request.method == "POST" else 200
    )


def _delete_row(request: Request, row: Deletable) -> HttpResponse:
    after = _list_of(row)
    deleted = actions.delete(row, by=request.user)
    notify(
        request,
        f"Deleted {deleted.label}. It can be restored until {deleted.until:%Y-%m-%d} on the page Storage.",
        undo=url("deletion_undo", deleted.pk),
    )
    return redirect(after)


@action
def undo(request: Request, deletion_id: int) -> HttpResponse:
    """Undo a deletion."""
    deletions = access.restorable_deletions(request.user).filter(pk=deletion_id).select_related("project")
    if (row := deletions.first()) is None:
        raise NotFound("There is no such deletion that you may undo.")
    actions.restore(row, by=request.user)
    notify(request, f"Restored {row.label}.")
    return redirect("storage")


def _address_of_row(row: Deletable) -> str:
    """Return a row's page."""
    match row:
        case Project():
            return reverse("project_settings", args=[row.slug])
        case Dataset():
            return url("dataset", row.slug, project=row.project.slug if row.project else None)
        case Experiment():
            return reverse("experiment", args=[row.project.slug, row.pk])
        case Job():
            return reverse("job", args=[row.pk])
        case ModelVersion():
            return reverse("version", args=[row.model.name, row.number])
        case CodeVersion():
            return url("code_version", row.digest, project=row.project.slug)


def _list_of(row: Deletable) -> str:
    """Return the page that lists such rows."""
    match row:
        case Project():
            return reverse("projects")
        case Dataset():
            return reverse("datasets")
        case Experiment():
            return reverse("experiments", args=[row.project.slug])
        case Job():
            return reverse("jobs")
        case ModelVersion():
            return reverse("model", args=[row.model.name])
        case CodeVersion():
            return reverse("code")


def _address_of_referrer(referrer: ReferrerOut) -> str:
    """Return a referrer's page."""
    name = referrer.name
    pages: dict[str, Callable[[], str]] = {
        "job": partial(reverse, "job", args=[name]),
        "experiment": partial(reverse, "experiment", args=[referrer.project, name]),
        "promotion": partial(reverse, "approval", args=[name]),
        "endpoint": partial(reverse, "endpoint", args=[name]),
        "version": partial(reverse, "version", args=name.split("/")),
        "alias": partial(reverse, "model", args=name.split("/")[:1]),
    }
    return pages[referrer.kind]()


urls = [
    path("delete/<slug:deletable>/<int:target>", deletion, name="deletion"),
    path("deletions/<int:deletion_id>/undo", undo, name="deletion_undo"),
]
