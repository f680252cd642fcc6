"""Filters and orders jobs for lists: by text, state, kind, data set, model and person."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from jobs.kinds import public_names
from jobs.models import Job, Revision
from jobs.models.job import JobQuerySet
from jobs.states import FINAL, JobState

STATE_SETS: dict[str, frozenset[JobState]] = {
    "unfinished": frozenset(JobState) - frozenset(FINAL),
    "finished": frozenset(FINAL),
}
"""Names of several states, beside the states themselves."""

SORTS = {"created": "pk", "name": "title", "state": "state", "kind": "kind"}
"""The sortable columns. None is null, as pages by key require."""

MAX_KEY_DIGITS = 18

MODEL_NAMES = ("template", "name", "entry", "model")
"""Where the spec of a model has its name, by its kind: a template, a hypermodel, code, a version."""


@dataclass(frozen=True)
class JobFilter:
    """The filters of a list; an empty field filters nothing.

    Attributes:
        text: words that the title has, or a number.
        state: a state, or a name in `STATE_SETS`.
        kind: the public name of a kind.
        dataset: the slug of the data set.
        model: the name of a template, a hypermodel, a registered model, or an entry of code.
        person: the user name of who submitted it.
    """

    text: str = ""
    state: str = ""
    kind: str = ""
    dataset: str = ""
    model: str = ""
    person: str = ""


def unknown_value(chosen: JobFilter) -> str:
    """Return a sentence about a value that no job can have; an empty text if there is none."""
    if chosen.state and chosen.state not in (*JobState, *STATE_SETS):
        return f"There is no state “{chosen.state}”."
    if chosen.kind and chosen.kind not in public_names():
        return f"There is no kind “{chosen.kind}”."
    return ""


def filter_jobs(rows: JobQuerySet, chosen: JobFilter) -> JobQuerySet:
    """Return the jobs that fit all fields of a filter; none for an unknown value.

    Without a kind these are the jobs that people submitted: steps are on the page of their job, and jobs that
    only prepare something are on the page that needs them.
    """
    if unknown_value(chosen):
        return rows.none()
    rows = rows.called(chosen.kind) if chosen.kind else rows.roots().listed()
    if chosen.state:
        rows = rows.filter(state__in=STATE_SETS.get(chosen.state, (chosen.state,)))
    if chosen.text.strip():
        rows = rows.filter(_has_text(chosen.text))
    if chosen.person:
        rows = rows.filter(created_by__username=chosen.person)
    if chosen.dataset or chosen.model:
        rows = rows.filter(revision__in=_revisions(chosen))
    return rows


def _has_text(text: str) -> Q:
    words = text.split()
    in_title = Q()
    for word in words:
        in_title &= Q(title__icontains=word)
    number = text.strip().removeprefix("#")
    if number.isascii() and number.isdigit() and len(number) < MAX_KEY_DIGITS:
        return in_title | Q(pk=int(number))
    return in_title


def _revisions(chosen: JobFilter) -> Any:
    """Return the revisions with this data set and model. Each is read once, however many jobs it has."""
    rows = Revision.objects.all()
    if chosen.dataset:
        rows = rows.filter(spec_json__data__dataset=chosen.dataset)
    if chosen.model:
        named = Q()
        for name in MODEL_NAMES:
            named |= Q(**{f"spec_json__model__{name}": chosen.model})
        rows = rows.filter(named)
    return rows.values("pk")


@dataclass(frozen=True)
class JobSubject:
    """The data set and the model of a job, for a list; empty without a spec.

    Attributes:
        dataset: the slug of the data set.
        dataset_version: its version; None for the newest.
        model: the model's name; see `JobFilter.model`.
        model_version: the number or alias of a registered version.
    """

    dataset: str = ""
    dataset_version: int | None = None
    model: str = ""
    model_version: str = ""


def subject_of(job: Job) -> JobSubject:
    """Return a job's data set and model, from its revision. No spec is validated: a list has many."""
    spec = job.revision.spec_json if job.revision else {}
    data, model = spec.get("data") or {}, spec.get("model") or {}
    return JobSubject(
        dataset=data.get("dataset") or "",
        dataset_version=data.get("dataset_version"),
        model=next((model[name] for name in MODEL_NAMES if model.get(name)), ""),
        model_version=str(model.get("number") or model.get("alias") or ""),
    )
