"""Builds the breadcrumb to a job: its project, its experiment and the job that it follows."""

from django.urls import reverse

from jobs.models import Job
from webapp.pages.shortcuts import url


def trail_to_job(row: Job) -> list[tuple[str, str]]:
    """Return the pages above a job's own, the project's first."""
    trail = []
    if row.project is not None:
        trail.append((row.project.name, url("experiments", row.project.slug)))
        if row.experiment is not None:
            address = url("experiment", row.project.slug, row.experiment.pk)
            trail.append((row.experiment.name, address))
    if row.project is None or row.experiment is None:
        trail.append(("Jobs", url("jobs", project=row.project.slug if row.project is not None else "")))
    if row.parent is not None:
        trail.append((name_in_trail(row.parent), reverse("job", args=[row.parent_id])))
    return trail


def name_in_trail(row: Job) -> str:
    """Return a job's name below its experiment: its number if it is only called like that."""
    is_named = row.title and (row.experiment is None or row.title != row.experiment.name)
    return row.title if is_named else f"Job {row.pk}"
