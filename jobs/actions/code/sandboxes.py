"""Records the sandboxes that runs with user code really had."""

from django.db import transaction

from jobs.actions.job_locks import locked_with_root
from jobs.answers.code.sandbox import SandboxOut
from jobs.errors import StaleFence
from jobs.messages.sandbox import SandboxRecord, present_level
from jobs.models import Attempt, Job
from jobs.states import AttemptState


def record_sandbox(attempt_id: int, sandbox: SandboxRecord) -> None:
    """Store an attempt's sandbox, and with its job the weakest one that an attempt had.

    Raises:
        StaleFence: the attempt is no longer running; nothing was written.
    """
    with transaction.atomic():
        running = Attempt.objects.filter(pk=attempt_id, state=AttemptState.RUNNING)
        if not running.update(sandbox_json=sandbox.model_dump(mode="json")):
            raise StaleFence(f"attempt {attempt_id} is no longer running")
        job = locked_with_root(Attempt.objects.values_list("job", flat=True).get(pk=attempt_id))
        weakest = _weakest_sandbox(job, sandbox).model_dump(mode="json")
        if job.sandbox_json != weakest:
            Job.objects.filter(pk=job.pk).update(sandbox_json=weakest)


def _weakest_sandbox(job: Job, sandbox: SandboxRecord) -> SandboxOut:
    new = SandboxOut(level=sandbox.level, network=sandbox.network)
    if job.sandbox_json is None:
        return new
    earlier = SandboxOut.model_validate(job.sandbox_json)
    return SandboxOut(
        level=min(earlier.level, new.level, key=lambda level: present_level(level).strength),
        network=earlier.network or new.network,
    )
