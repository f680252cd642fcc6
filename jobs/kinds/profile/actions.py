"""What is done for profiles: a dataset version is read, described, and kept as a table."""

from typing import Any

from jobs.actions import datasets
from jobs.actions.kind_actions import JobError, KindActions, register
from jobs.kinds.profile.facts import PROFILE
from jobs.kinds.profile.payload import ProfilePayload, ProfileResult, ProfileTask
from jobs.models import Attempt, DatasetVersion, Job
from jobs.store import store


class ProfileActions(KindActions[ProfilePayload, ProfileResult]):
    """A dataset version becomes ready, or fails, by its profile."""

    def build_task(self, attempt: Attempt, common: dict[str, Any]) -> ProfileTask:
        """Return the upload and what was asked of it, without the file's name, which is for people."""
        versions = DatasetVersion.objects.select_related("upload")
        version = versions.get(pk=_version_of(attempt.job))
        path = str(store().path(version.upload.digest)) if version.upload is not None else None
        asked = {name: value for name, value in version.request.items() if name != "file"}
        return ProfileTask(**common, **asked, path=path)

    def on_done(self, job: Job, result: ProfileResult) -> None:
        """Give the dataset version its profile and its table."""
        table = job.artifacts.filter(role="dataset").latest("pk").artifact
        datasets.profiled(_version_of(job), result.profile, result.digest, table)

    def on_failed(self, job: Job, error: JobError) -> None:
        """Keep with the dataset version why it could not be read."""
        datasets.profile_failed(_version_of(job), error)


def _version_of(job: Job) -> int:
    return job.payload_as(ProfilePayload).dataset_version


register(PROFILE.name, ProfileActions())
