"""Counts how much people have used of each pool; the order of waiting jobs depends on it."""

from collections import defaultdict
from collections.abc import Collection

from jobs import clock
from jobs.models import Attempt, Share
from jobs.placement import shares


def add_use_of_attempts(keys: Collection[int]) -> None:
    """Add the use of ended attempts to their persons' shares, in the caller's transaction.

    The caller marks the attempts as counted in the same transaction, so that each is added once.
    """
    moment = clock.now()
    now = moment.timestamp()
    added: dict[tuple[str, int], float] = defaultdict(float)
    # An attempt that no worker has begun held slots for some seconds only.
    rows = Attempt.objects.filter(pk__in=keys)
    for pool, person, slots, claimed, ended in rows.values_list(
        "worker__pool", "job__created_by_id", "slots", "claimed", "ended"
    ):
        if person is not None and claimed is not None and ended is not None:
            added[pool, person] += shares.use_of_run(slots, claimed.timestamp(), ended.timestamp(), now)
    for (pool, person), seconds in sorted(added.items()):
        share, _ = Share.objects.get_or_create(pool=pool, person_id=person, defaults={"counted": moment})
        before = share.slot_seconds * shares.decay(now - share.counted.timestamp())
        Share.objects.filter(pk=share.pk).update(slot_seconds=before + seconds, counted=moment)
