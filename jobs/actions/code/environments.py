"""Records the environments with packages for code that workers build, use and remove."""

import datetime as dt
from collections.abc import Mapping
from typing import NamedTuple

from django.db import transaction

from jobs import clock
from jobs.messages.environments import (
    EnvironmentFacts,
    EnvironmentFailure,
    EnvironmentKey,
    EnvironmentState,
)
from jobs.models import PackageEnvironment
from jobs.spec.checks.packages import digest_of

INTERRUPTED = EnvironmentFailure(code="stopped", message="The run that needed it ended before it was built.")
LOST = EnvironmentFailure(code="worker_lost", message="The worker ended before it was built.")


class Unfinished(NamedTuple):
    """A build without an end: its environment's digest, and when it was begun."""

    digest: str
    started: dt.datetime


def record_build(place: str, key: EnvironmentKey, *, worker: int) -> None:
    """Record that a worker begins to build an environment.

    Args:
        place: the worker's folder.
        key: the environment.
        worker: the worker's id.
    """
    PackageEnvironment.objects.update_or_create(
        place=place,
        digest=key.digest,
        defaults={
            **_row_key(key),
            "state": EnvironmentState.BUILDING,
            "error_json": None,
            "worker_id": worker,
            "started": clock.now(),
            "log": "",
        },
    )


def record_built(place: str, facts: EnvironmentFacts, log: str) -> None:
    """Record a built environment, whose build was recorded before.

    Args:
        place: the worker's folder.
        facts: about the environment.
        log: the output of its build.
    """
    built = dt.datetime.fromtimestamp(facts.built, dt.UTC)
    PackageEnvironment.objects.filter(place=place, digest=facts.digest).update(
        state=EnvironmentState.READY,
        error_json=None,
        packages_json=[package.model_dump() for package in facts.packages],
        bytes=facts.bytes,
        seconds=facts.seconds,
        installer=facts.installer,
        source=facts.source[:500],
        level=facts.level,
        built=built,
        last_used=built,
        log=log,
    )


def record_failure(
    place: str, key: EnvironmentKey, failure: EnvironmentFailure | None, log: str, *, worker: int
) -> None:
    """Record a failed build, unless another worker has begun to build the environment since.

    Args:
        place: the worker's folder.
        key: the environment.
        failure: None if the run that needed it has ended before.
        log: the output of its build.
        worker: the id of the worker that has begun this build.
    """
    PackageEnvironment.objects.filter(place=place, digest=key.digest, worker=worker).update(
        state=EnvironmentState.FAILED,
        error_json=(failure or INTERRUPTED).model_dump(),
        log=log,
        packages_json=[],
        bytes=None,
        built=None,
    )


def record_use(place: str, times: Mapping[str, float]) -> None:
    """Record when the environments in a folder were last used, and that others are no longer there.

    Args:
        place: the folder.
        times: the times of all built environments in it, by digest, in seconds since 1970.
    """
    with transaction.atomic():
        rows = PackageEnvironment.objects.select_for_update().filter(
            place=place, state=EnvironmentState.READY
        )
        for row in rows.only("digest", "state", "last_used"):
            if row.digest not in times:
                row.state = EnvironmentState.REMOVED
                row.save(update_fields=["state"])
                continue
            last = dt.datetime.fromtimestamp(times[row.digest], dt.UTC)
            if row.last_used is None or last > row.last_used:
                row.last_used = last
                row.save(update_fields=["last_used"])


def record_interruption(place: str, build: Unfinished) -> None:
    """Record that a build has ended without a result, because its worker died."""
    rows = PackageEnvironment.objects.filter(
        place=place, digest=build.digest, started=build.started, state=EnvironmentState.BUILDING
    )
    rows.update(state=EnvironmentState.FAILED, error_json=LOST.model_dump())


def unfinished_builds(place: str) -> list[Unfinished]:
    """Return the builds in a folder that are recorded as not ended."""
    rows = PackageEnvironment.objects.filter(place=place, state=EnvironmentState.BUILDING)
    return [Unfinished(*row) for row in rows.values_list("digest", "started")]


def _row_key(key: EnvironmentKey) -> dict[str, object]:
    return {
        "requirements": list(key.requirements),
        "requirements_digest": digest_of(key.requirements),
        "python": key.python,
        "platform": key.platform,
        "for_engine": key.for_engine,
    }
