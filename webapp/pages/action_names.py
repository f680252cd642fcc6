"""Finds what can be done with a job, an experiment or an endpoint by its words, such as "pause job 6".

Each result leads to the page or the dialog that asks first; none changes anything itself.
"""

from collections.abc import Iterator

from django.urls import reverse

from jobs import access
from jobs.access import Action
from jobs.models import Job, User
from jobs.queries.experiments import experiments
from jobs.states import FINAL
from webapp.pages.matching import words_of
from webapp.pages.page_names import NamedPage
from webapp.pages.runs.job_orders import ORDERS, jobs_that_accept
from webapp.pages.shortcuts import url

MIN_VERB = 3
"""The fewest letters of a verb: fewer would offer commands for most queries."""

MAX_LOOKED_AT = 20
"""Of the newest jobs that fit a query, how many are asked whether they accept the command."""

FILLERS = {"job", "jobs", "search", "training", "experiment", "endpoint", "model", "the", "back", "down"}
"""Words of a command that name no object."""


def find_actions(user: User, text: str) -> Iterator[NamedPage]:
    """Yield the actions that `text` names and that the user may do now."""
    verb, *rest = words_of(text) or [""]
    if len(verb) < MIN_VERB:
        return
    names = [word for word in rest if word not in FILLERS]
    for what, order in ORDERS.items():
        if what.startswith(verb):
            for job in jobs_that_accept(user, what, _jobs_named(user, names, is_over=what == "retry")):
                title = f"{order.label} job {job.pk}"
                yield NamedPage(title, job.label, url("job_orders", what=what, job=job.pk), "action")
    if "delete".startswith(verb) and names:
        yield from _deletions(user, names)
    if "edit".startswith(verb) and names:
        yield from _edits(user, names)
    for phrase, label in (("roll", "Roll back"), ("take", "Take down")):
        if phrase.startswith(verb):
            yield from _endpoint_actions(user, names, label)


def _jobs_named(user: User, names: list[str], *, is_over: bool) -> list[Job]:
    """Return the newest roots with these words in their title, or with this number."""
    rows = access.visible_jobs(user).select_related("project", "revision", "experiment", "parent")
    if len(names) == 1 and names[0].isascii() and names[0].isdigit() and len(names[0]) < 18:
        return list(rows.filter(pk=int(names[0])))
    # Without a number only unfinished ones are meant, except where only a finished one accepts the command.
    rows = rows.roots().listed()
    rows = rows.filter(state__in=FINAL) if is_over else rows.unfinished()
    for name in names:
        rows = rows.filter(title__icontains=name)
    return list(rows.order_by("-pk")[:MAX_LOOKED_AT])


def _deletions(user: User, names: list[str]) -> Iterator[NamedPage]:
    for job in _jobs_named(user, names, is_over=True):
        if (
            job.state in FINAL
            and job.parent_id is None
            and access.may_delete(user, job.project, owner=job.created_by)
        ):
            address = reverse("deletion", args=["job", job.pk])
            yield NamedPage(f"Delete job {job.pk}", job.label, address, "action")


def _edits(user: User, names: list[str]) -> Iterator[NamedPage]:
    for row in experiments.editable_experiments(user, names)[:MAX_LOOKED_AT]:
        address = reverse("experiment_edit", args=[row.project.slug, row.pk])
        yield NamedPage(f"Edit {row.name}", row.project.slug, address, "action")


def _endpoint_actions(user: User, names: list[str], label: str) -> Iterator[NamedPage]:
    rows = access.visible_endpoints(user).exclude(production=None)
    rows = rows.filter(model__project__in=access.projects_of(user, Action.SERVE))
    for name in names:
        rows = rows.filter(model__name__icontains=name)
    for row in rows.select_related("model__project").order_by("model__name")[:MAX_LOOKED_AT]:
        address = reverse("endpoint", args=[row.model.name])
        yield NamedPage(f"{label} {row.model.name}", row.model.project.slug, address, "action")
