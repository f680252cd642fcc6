"""Finds the earlier settings with which the form of an experiment opens: those of a job or of a revision."""

from dataclasses import dataclass

from jobs import access
from jobs.errors import NotFound
from jobs.models import Experiment, Job, Revision, User
from webapp.pages.shortcuts import Request, url
from webapp.whole_numbers import read_whole


@dataclass(frozen=True)
class OpenedSettings:
    """The settings that an address names, beside those that the form would show without it.

    Attributes:
        revision: the revision in the form.
        job: the job that has these settings; None if the address names only the revision.
        newest: the number of the experiment's newest revision.
        has_draft: whether the experiment has a draft, which saving replaces.
        newest_url: the form with the draft, else with the newest revision.
    """

    revision: Revision
    job: Job | None
    newest: int
    has_draft: bool
    newest_url: str

    @property
    def is_shown_anyway(self) -> bool:
        """Return whether the form would show the same settings without the address."""
        return self.revision.number == self.newest and not self.has_draft


def opened_settings(request: Request, experiment: Experiment) -> OpenedSettings | None:
    """Return the settings that `?job=` or `?revision=` names; None if the address names none.

    Raises:
        NotFound: the experiment has no such job or revision.
    """
    job = None
    if (wanted := request.GET.get("job")) is not None:
        job, revision = _settings_of_job(request.user, experiment, wanted)
    elif (wanted := request.GET.get("revision")) is not None:
        revision = _find_revision(experiment, wanted)
    else:
        return None
    newest = experiment.revisions.order_by("-number").first()
    return OpenedSettings(
        revision=revision,
        job=job,
        newest=newest.number if newest is not None else revision.number,
        has_draft=experiment.draft is not None,
        newest_url=url("experiment_edit", experiment.project.slug, experiment.pk),
    )


def _settings_of_job(user: User, experiment: Experiment, wanted: str) -> tuple[Job, Revision]:
    number = read_whole(wanted)
    job = access.get_job(user, number) if number is not None else None
    if job is None or job.revision is None or job.revision.experiment_id != experiment.pk:
        raise NotFound(f"{experiment.name} has no job {wanted}.")
    return job, job.revision


def _find_revision(experiment: Experiment, wanted: str) -> Revision:
    number = read_whole(wanted)
    revision = None if number is None else experiment.revisions.filter(number=number).first()
    if revision is None:
        raise NotFound(f"{experiment.name} has no revision {wanted}.")
    return revision
