"""Kills a scheduler at every step of a preemption, and prints the outcome. Run as a script."""

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import django

django.setup()

from django.db import connections, transaction  # noqa: E402  needs the set-up

from jobs.actions.runs import attempt_end, preemption, schedule  # noqa: E402
from jobs.models import Attempt, Job  # noqa: E402
from jobs.states import Outcome  # noqa: E402

MAX_STEPS = 100


def die_at(step: int) -> None:
    """Kill this process before or after the call number `step` of a function that changes something."""
    passed = 0

    def count() -> None:
        nonlocal passed
        passed += 1
        if passed > step:
            os.kill(os.getpid(), signal.SIGKILL)

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            count()
            result = function(*args, **kwargs)
            count()
            return result

        return call

    for owner, name in (
        (transaction.Atomic, "__exit__"),
        (preemption, "preempt"),
        (preemption, "_tell_both"),
        (schedule, "_assign_candidate"),
    ):
        setattr(owner, name, watched(getattr(owner, name)))


def killed(action: Callable[[], Any]) -> int:
    """Run an action in a fork that is killed at each step in turn, until it comes to its end."""
    for step in range(MAX_STEPS):
        connections.close_all()
        pid = os.fork()
        if pid == 0:
            die_at(step)
            action()
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSIGNALED(status):
            return step
    raise AssertionError(f"more than {MAX_STEPS} steps")


def main() -> None:
    """Kill the passes of schedulers until each comes to its end, and print a line of JSON."""
    kills = killed(schedule.place_jobs)
    asked = list(Attempt.objects.open().exclude(preempted_for=None))
    (attempt,) = asked
    attempt_end.finish(attempt.pk, Outcome.PAUSED)
    kills += killed(schedule.place_jobs)
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
