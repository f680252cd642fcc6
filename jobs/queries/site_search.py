"""Searches jobs, experiments, models, data sets and code by name, for the search dialog (Ctrl-K)."""

from dataclasses import dataclass

from django.db.models import Q

from jobs import access
from jobs.models import User

MAX_PER_KIND = 5


@dataclass(frozen=True)
class Hit:
    """One result.

    Attributes:
        kind: the object's kind, in words.
        title: its name.
        hint: what distinguishes it from others with this name.
        page: the name of its URL pattern, with `arguments`.
        arguments: the pattern's arguments.
        project: its project's slug, where its page needs it: several projects may have the same object.
    """

    kind: str
    title: str
    hint: str
    page: str
    arguments: tuple[str | int, ...]
    project: str = ""


def search_by_text(user: User, text: str) -> list[Hit]:
    """Return the visible rows that match `text` by name or number, at most `MAX_PER_KIND` per kind."""
    text = text.strip()
    if not text:
        return []
    return [
        *_job_hits(user, text),
        *_experiment_hits(user, text),
        *_model_hits(user, text),
        *_dataset_hits(user, text),
        *_code_hits(user, text),
    ]


def _job_hits(user: User, text: str) -> list[Hit]:
    number = text.removeprefix("#")
    matches = Q(title__icontains=text)
    # No id is longer, and `int` refuses thousands of digits.
    if number.isascii() and number.isdigit() and len(number) < 18:
        matches |= Q(pk=int(number))
    rows = access.visible_jobs(user).filter(matches).order_by("-pk")[:MAX_PER_KIND]
    return [Hit("job", row.label, f"#{row.pk} · {row.state}", "job", (row.pk,)) for row in rows]


def _experiment_hits(user: User, text: str) -> list[Hit]:
    rows = access.visible_experiments(user).filter(name__icontains=text, archived=False)
    return [
        Hit("experiment", row.name, row.project.slug, "experiment", (row.project.slug, row.pk))
        for row in rows.select_related("project").order_by("-pk")[:MAX_PER_KIND]
    ]


def _model_hits(user: User, text: str) -> list[Hit]:
    rows = access.visible_models(user).filter(name__icontains=text).select_related("project")
    return [
        Hit("model", row.name, row.project.slug, "model", (row.name,))
        for row in rows.order_by("name")[:MAX_PER_KIND]
    ]


def _dataset_hits(user: User, text: str) -> list[Hit]:
    matches = Q(slug__icontains=text) | Q(name__icontains=text)
    rows = (
        access.visible_datasets(user)
        .filter(matches)
        .select_related("project")
        .order_by("slug")[:MAX_PER_KIND]
    )
    return [
        Hit("data set", row.name, slug or "bundled", "dataset", (row.slug,), slug)
        for row, slug in ((row, row.project.slug if row.project else "") for row in rows)
    ]


def _code_hits(user: User, text: str) -> list[Hit]:
    rows = access.visible_code(user).filter(Q(name__icontains=text) | Q(digest__startswith=text.lower()))
    # The findings are large.
    versions = rows.select_related("project").defer("found_json").order_by("-pk")[:MAX_PER_KIND]
    return [
        Hit("code", row.name, f"{row.digest[:8]} · {slug}", "code_version", (row.digest,), slug)
        for row, slug in ((row, row.project.slug) for row in versions)
    ]
