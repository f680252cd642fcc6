"""Requests split overviews for dataset versions, which workers compute."""

from django.db import transaction

from jobs import access
from jobs.actions.audit import audit
from jobs.actions.people import quotas
from jobs.actions.runs import submit
from jobs.errors import BadInput
from jobs.models import DatasetVersion, Project, User
from jobs.queries.data import split_overviews
from jobs.spec.checks.split import problems_of_split
from jobs.spec.data.split_roles import canonical
from jobs.spec.problems import Problem
from jobs.spec.sections.data import Split

PRIORITY = 80
"""A person waits for it, as for a profile."""


def request_overview(version: DatasetVersion, split: Split, *, by: User, project: Project | None) -> None:
    """Queue a job that compares a split's parts, unless one has done so or will do so.

    Args:
        version: the data.
        split: may leave the column to the roles.
        by: the acting user.
        project: in which the job runs, for bundled data; other data have their own.

    Raises:
        Forbidden: `by` may not run jobs in the project.
        BadInput: the version is not ready, the rows cannot be split in this way, or the project is missing.
        QuotaReached: the project has too many unfinished jobs.
    """
    home = version.dataset.project or project
    if home is None:
        message = "name the project in which the job runs: the data are bundled"
        raise BadInput(message, [Problem("/project", message)])
    access.require(by, home, access.Action.WRITE)
    chosen = _check_split(version, split)
    # Two requests at the same time may compute it twice, with the same result.
    if split_overviews.is_of_profile(version, chosen) or split_overviews.overview_job(
        version, chosen, [home]
    ):
        return
    with transaction.atomic():
        quotas.require_room_for_job(home)
        job = submit.queue(
            split_overviews.overview_payload(version, chosen),
            project=home,
            title=f"Split of {version}",
            priority=PRIORITY,
            created_by=by,
        )
        audit.record("dataset.split_overview", version, by=by, project=home, job=job.pk)


def _check_split(version: DatasetVersion, split: Split) -> Split:
    """Return a split's canonical form."""
    profile = version.profile
    if profile is None:
        message = f"{version} is {version.state}; its rows can be split once it is ready"
        raise BadInput(message, [Problem("", message)])
    if split_problems := problems_of_split(split, profile):
        problems = [Problem(f"/split{problem.pointer}", problem.message) for problem in split_problems]
        raise BadInput("The rows cannot be split in this way.", problems)
    return canonical(split, profile)
