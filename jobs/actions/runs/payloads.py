"""Changes fields in a job's payload."""

from typing import Any

from django.db import transaction

from jobs.models import Job


def change_payload(job: Job, **fields: Any) -> None:
    """Set fields in a job's payload under a row lock. Other fields keep their current values."""
    with transaction.atomic():
        current = Job.objects.locked().only("kind", "payload_json").get(pk=job.pk)
        job.payload_json = current.payload.changed(**fields).to_json()
        job.save(update_fields=["payload_json"])
