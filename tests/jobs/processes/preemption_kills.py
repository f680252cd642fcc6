"""Kills a scheduler at every step of a preemption, and prints the outcome. Run as a script."""

import json
import sys

import django

django.setup()

from django.db import transaction  # noqa: E402  needs the set-up

from jobs.actions.runs import attempt_end, preemption, schedule  # noqa: E402
from jobs.models import Attempt, Job  # noqa: E402
from jobs.states import Outcome  # noqa: E402
from tests.jobs.processes.kills import kill_at_every_step  # noqa: E402

WATCHED = (
    (transaction.Atomic, "__exit__"),
    (preemption, "preempt"),
    (preemption, "_tell_both"),
    (schedule, "_assign_candidate"),
)


def main() -> None:
    """Kill the passes of schedulers until each comes to its end, and print a line of JSON."""
    kills = kill_at_every_step(schedule.place_jobs, WATCHED)
    asked = list(Attempt.objects.open().exclude(preempted_for=None))
    (attempt,) = asked
    attempt_end.finish(attempt.pk, Outcome.PAUSED)
    kills += kill_at_every_step(schedule.place_jobs, WATCHED)
    urgent = Job.objects.order_by("-priority").first()
    assert urgent is not None
    placed = Attempt.objects.open().filter(job=urgent)
    preempted = Job.objects.get(pk=attempt.job_id)
    report = {
        "kills": kills,
        "asked": [row.preempted_for_id == urgent.pk for row in asked],
        "placed": placed.count(),
        "preempted": preempted.state,
        "restarts": preempted.restarts,
        "slots": sum(Attempt.objects.open().values_list("slots", flat=True)),
    }
    sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main()
