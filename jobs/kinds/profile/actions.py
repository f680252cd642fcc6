"""Implements profiles: reads and describes a dataset version and stores it as a table."""

from typing import Any

from django.conf import settings

from jobs.actions.data import profiles
from jobs.actions.runs.kind_actions import JobError, KindActions, register_actions
from jobs.kinds.profile.facts import PROFILE
from jobs.kinds.profile.payload import FurtherFile, ProfilePayload, ProfileResult, ProfileTask
from jobs.models import Attempt, DatasetVersion, Job
from jobs.spec.data.file_limits import FileLimits
from jobs.store import store

FOR_PEOPLE = ("file", "files", "code", "from_version")
"""Parts of a version's request that the task does not need."""


class ProfileActions(KindActions[ProfilePayload, ProfileResult]):
    """The profile makes a dataset version ready, or failed."""

    def build_task(self, attempt: Attempt, common: dict[str, Any]) -> ProfileTask:
        """Return the task: the upload and its request, without the file's origin."""
        versions = DatasetVersion.objects.select_related("upload")
        version = versions.get(pk=_version_of(attempt.job))
        path = str(store().path(version.upload.digest)) if version.upload is not None else None
        request = {name: value for name, value in version.request.items() if name not in FOR_PEOPLE}
        digests = version.further_files.values_list("artifact", flat=True)
        more = tuple(FurtherFile(path=str(store().path(digest))) for digest in digests)
        limits = FileLimits(
            expanded_bytes=settings.TRAINYARD_MAX_EXPANDED_BYTES,
            table_bytes=settings.TRAINYARD_MAX_TABLE_BYTES,
        )
        return ProfileTask(**common, **request, path=path, more=more, limits=limits)

    def on_done(self, job: Job, result: ProfileResult) -> None:
        """Store the profile and the table in the dataset version."""
        table = job.artifacts.filter(role="dataset").latest("pk").artifact
        profiles.record_profile(_version_of(job), result.profile, result.digest, table)

    def on_failed(self, job: Job, error: JobError) -> None:
        """Store in the dataset version why it could not be read."""
        profiles.record_profile_failure(_version_of(job), error)


def _version_of(job: Job) -> int:
    return job.payload_as(ProfilePayload).dataset_version


register_actions(PROFILE.name, ProfileActions())
