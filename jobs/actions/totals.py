"""Counts what has happened: ends of attempts, for the metrics and people's shares; collections of files."""

import re
from collections import Counter
from collections.abc import Mapping

from django.db import transaction
from django.db.models import F

from jobs import clock
from jobs.actions.runs import shares
from jobs.models import Attempt, RunningTotal
from jobs.states import AttemptState

RUNS, COLLECTIONS = "runs", "collections"
COLLECTED_FILES, COLLECTED_BYTES = "collected_files", "collected_bytes"
BATCH = 1000
MOST_REASONS = 60
"""Labels of one total. Error codes come from runners, so there might be any number of them."""
OTHER = "other"
_CODE = re.compile(r"[a-z][a-z0-9_]{0,39}")


def count_ended_attempts() -> int:
    """Add ended attempts to the totals, each once, and return how many."""
    waiting = Attempt.objects.filter(state=AttemptState.ENDED, counted=False)
    # Without a transaction, which would take SQLite's only lock: there is nearly never one.
    if not waiting.exists():
        return 0
    with transaction.atomic():
        locked = waiting.select_for_update(of=("self",), no_key=True).order_by("pk")
        rows = list(locked.values_list("pk", "outcome", "error__code")[:BATCH])
        keys = [key for key, _, _ in rows]
        Attempt.objects.filter(pk__in=keys).update(counted=True)
        add(RUNS, Counter(f"{outcome}/{_reason(code)}" for _, outcome, code in rows))
        shares.add_use_of_attempts(keys)
    return len(rows)


def add(name: str, counts: Mapping[str, int]) -> None:
    """Add to the values of a total, by label, in the caller's transaction."""
    now = clock.now()
    known = set(RunningTotal.objects.filter(name=name).values_list("label", flat=True))
    # In order, so that two callers never wait for each other's rows.
    for label, count in sorted(counts.items()):
        used = label if label in known or len(known) < MOST_REASONS else _rest(label)
        known.add(used)
        rows = RunningTotal.objects.filter(name=name, label=used)
        if not rows.update(value=F("value") + count, changed=now):
            RunningTotal.objects.create(name=name, label=used, value=count, changed=now)


def _reason(code: object) -> str:
    if code is None:
        return ""
    return code if isinstance(code, str) and _CODE.fullmatch(code) else OTHER


def _rest(label: str) -> str:
    first, slash, _ = label.partition("/")
    return f"{first}{slash}{OTHER}"
