"""Reads how much people have used of each pool lately."""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from jobs import clock
from jobs.models import Attempt, Share, User
from jobs.placement import shares
from jobs.placement.shares import Lane
from jobs.queries.people.people import visible_accounts
from jobs.queries.runs.open_attempts import OpenAttempt, read_open_attempts
from jobs.states import AttemptState

SECONDS_PER_HOUR = 3600.0
LEAST_SHOWN = 60.0
"""Slot-seconds. Less is not shown: use halves each day, but never vanishes."""


def read_use(running: Iterable[OpenAttempt], now: dt.datetime) -> dict[Lane, float]:
    """Return decayed slot-seconds by pool and person: of ended runs, of those not yet counted, and of others.

    Args:
        running: the open attempts.
        now: the time at which they count.
    """
    used: dict[Lane, float] = defaultdict(float)
    moment = now.timestamp()
    for pool, person, seconds, counted in Share.objects.values_list(
        "pool", "person_id", "slot_seconds", "counted"
    ):
        used[pool, person] += seconds * shares.decay(moment - counted.timestamp())
    # The scheduler adds them to the shares every few seconds.
    ended = Attempt.objects.filter(state=AttemptState.ENDED, counted=False, claimed__isnull=False)
    for pool, person, slots, claimed, end in ended.values_list(
        "worker__pool", "job__created_by_id", "slots", "claimed", "ended"
    ):
        if claimed is not None and end is not None:
            used[pool, person] += shares.use_of_run(slots, claimed.timestamp(), end.timestamp(), moment)
    for attempt in running:
        begun = (attempt.claimed or now).timestamp()
        used[attempt.pool, attempt.person] += shares.use_while_running(attempt.slots, begun, moment)
    return used


@dataclass(frozen=True)
class PersonShare:
    """A person's use of a pool.

    Attributes:
        person: the person; None if the reader may not see who it is.
        hours: decayed slot-hours.
        slots: how many slots the person's jobs hold now.
        limit: how many they may hold at once, in all pools; None without a limit.
    """

    person: User | None
    hours: float
    slots: int
    limit: int | None


@dataclass(frozen=True)
class PoolShares:
    """The use of a pool by people, the one with the least first, who is next."""

    pool: str
    people: list[PersonShare]


def shares_of_pools(reader: User) -> list[PoolShares]:
    """Return how much people have used of each pool lately, for readers of the queue."""
    running = read_open_attempts()
    used = read_use(running, clock.estimate())
    holding: dict[Lane, int] = defaultdict(int)
    for attempt in running:
        holding[attempt.pool, attempt.person] += attempt.slots
    shown = {lane for lane, seconds in used.items() if seconds >= LEAST_SHOWN or holding[lane]}
    visible = {user.pk: user for user in visible_accounts(reader)} | {reader.pk: reader}
    limits = dict(User.objects.filter(max_slots__isnull=False).values_list("pk", "max_slots"))
    pools: dict[str, list[PersonShare]] = defaultdict(list)
    for pool, person in sorted(shown, key=lambda lane: (lane[0], used[lane])):
        # Jobs of the installation itself belong to no person.
        if person is None:
            continue
        share = PersonShare(
            person=visible.get(person),
            hours=used[pool, person] / SECONDS_PER_HOUR,
            slots=holding[pool, person],
            limit=limits.get(person) if person in visible else None,
        )
        pools[pool].append(share)
    return [PoolShares(pool, people) for pool, people in pools.items()]
