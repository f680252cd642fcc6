"""Has a worker install the packages that code needs, before a run needs them."""

from typing import Any

from jobs.actions.code import own_code
from jobs.actions.runs.kind_actions import KindActions, register_actions
from jobs.errors import Conflict
from jobs.kinds.base import Result
from jobs.kinds.install.facts import INSTALL
from jobs.kinds.install.payload import InstallPayload, InstallTask
from jobs.models import Attempt


class InstallActions(KindActions[InstallPayload, Result]):
    """An installation reads a code version, and changes only the rows about its packages."""

    def build_task(self, attempt: Attempt, common: dict[str, Any]) -> InstallTask:
        """Return the code whose packages are installed."""
        job, payload = attempt.job, attempt.job.payload_as(InstallPayload)
        if job.project is None:
            raise Conflict(f"job {job.pk} has no project whose code it could read")
        code = own_code.code_of_version(job.project, payload.code)
        return InstallTask(**{**common, "code": code}, for_engine=payload.for_engine)


register_actions(INSTALL.name, InstallActions())
