"""Every interval and bound of the node in one place, in seconds unless the name says otherwise."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Self

PREFIX = "TRAINYARD_NODE_"


@dataclass(frozen=True)
class Timing:
    """The defaults are the promises of the design; tests and operators change them by environment."""

    lease: float = 15.0
    """How long the database lets an attempt be ours after a renewal."""
    lease_margin: float = 3.0
    """How long before the lease's end we stop our own runners, by the monotonic clock."""
    renew: float = 5.0
    renew_patience: float = 3.0
    """A renewal that takes longer is given up and tried again."""
    watch: float = 0.25
    """How often leases, caps and silence are looked at."""
    poll: float = 2.0
    """How often the database is asked for new attempts; messages only make it sooner."""
    commit: float = 0.2
    """Under load, the time between two commits of one attempt's events: what pages lag behind at most, what
    several short trials share."""
    sync: float = 1.0
    """How long a spooled event may be missing from the disk."""
    sample: float = 2.0
    grace: float = 30.0
    """From asking a runner to yield to killing it."""
    nag: float = 2.0
    """How often a runner is asked again: one that was just starting forgets what it was told."""
    silence: float = 60.0
    """The least time without progress that counts as a hang."""
    silence_factor: float = 10.0
    """A runner may be silent for this many of its median gaps."""
    first_progress: float = 300.0
    """Silence allowed before the first progress: imports, data, compilation."""
    stack_dump: float = 1.0
    idle_runner: float = 60.0
    standby_quiet: float = 1.0
    """Without a new task for so long, a standby is made if cores are idle."""
    standby_patience: float = 30.0
    """Without a new task for so long, it is made on a busy machine too: a free slot is ours."""
    idle_forkserver: float = 900.0
    """It holds some 250 MB, and saves every further start 2 to 3 seconds."""
    news: float = 2.0
    """How often a pruner that judges a running training hears of trials that have ended elsewhere."""
    retry_first: float = 0.1
    retry_limit: float = 5.0
    canary: float = 10.0
    canaries_missed: float = 3.0
    consumer_start: float = 120.0
    """How long a new consumer may take to answer its first canary: a busy machine imports slowly, and the
    poll does without it meanwhile."""
    suggestion: float = 55.0
    """Below the lease of a request for suggestions: a later answer would not be taken."""
    housekeeping: float = 60.0

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Read `TRAINYARD_NODE_<FIELD>` for each field that is set.

        Raises:
            ValueError: a value is not a number.
        """
        given = {field.name: environment.get(PREFIX + field.name.upper()) for field in fields(cls)}
        return cls(**{name: float(text) for name, text in given.items() if text})

    @property
    def trust(self) -> float:
        """Seconds after the start of a renewal during which the attempt is surely ours."""
        return self.lease - self.lease_margin
