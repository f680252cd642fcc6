"""Defines a node's intervals and time limits, in seconds unless the name has another unit."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import inf, nan
from typing import Self

from jobs.messages.lease import LEASE_SECONDS
from jobs.messages.worker_end import GRACE, UPLOAD_GRACE

PREFIX = "TRAINYARD_NODE_"
FIXED = ("lease",)
"""Fields that cannot be set: the server gives leases of its own length, whatever a worker expects."""


@dataclass(frozen=True)
class Timing:
    """Each field but those in `FIXED` can be set by the environment variable `TRAINYARD_NODE_<FIELD>`."""

    lease: float = LEASE_SECONDS
    """How long a worker holds an attempt after a renewal."""
    lease_margin: float = 3.0
    """How long before the lease expires the node suspends the run itself, by `jobs.lease_clock`."""
    renew: float = 5.0
    """How often leases are renewed."""
    renew_patience: float = 3.0
    """Timeout of a renewal. A failed one is repeated after `retry_first`, while the lease is still valid."""
    watch: float = 0.25
    """How often leases, log files and progress are checked."""
    poll: float = 2.0
    """How often the database is polled for new attempts. Messages only trigger a poll earlier."""
    commit: float = 0.2
    """Under load, the time between two commits of one attempt's events. Pages lag behind by this at most, and
    several short trials share a commit."""
    sync: float = 1.0
    """How often the spool is flushed to the disk."""
    sample: float = 2.0
    """How often CPU and memory of a runner become points of a chart."""
    quota: float = 5.0
    """How often an attempt asks for its share of its project's quota of events a second."""
    grace: float = GRACE
    """Time from the request to yield until the runner is killed."""
    same_signal: float = 1.0
    """How long after a runner's yield a signal to this process counts as the cause."""
    nag: float = 2.0
    """How often the request to yield is repeated: a runner that starts a task drops earlier requests."""
    silence: float = 60.0
    """The minimum time without progress that counts as a stall."""
    silence_factor: float = 10.0
    """A run is stalled after this many times its median gap between progress events."""
    epoch_factor: float = 2.0
    """A run is never stalled before this many times its longest epoch."""
    phase: float = 300.0
    """The minimum time allowed for a phase without progress, such as compiling or saving the model."""
    first_progress: float = 300.0
    """Time allowed before the first progress: imports, data, compilation."""
    stack_dump: float = 1.0
    """Time for a stalled runner to write its stack traces before it is killed."""
    idle_runner: float = 60.0
    """How long a runner without a task is kept for the next task of its job."""
    standby_quiet: float = 1.0
    """Time without a new task until a standby is started, if cores are idle."""
    standby_patience: float = 30.0
    """Time without a new task until a standby is started on a busy machine, too."""
    idle_forkserver: float = 900.0
    """A fork server takes about 250 MB, and saves 2 to 3 s at each start of a runner."""
    unanswered: float = 60.0
    """Time without an answer from the database until another process tries it."""
    probe: float = 20.0
    """How often another process then tries it."""
    news: float = 2.0
    """How often a pruner gets the learning curves of trials that ended on other runners."""
    upload: float = 1.0
    """The least time between two copies of one training's checkpoints into object storage."""
    upload_grace: float = UPLOAD_GRACE
    """How long the end of an attempt waits for the copies of its last checkpoints."""
    retry_first: float = 0.1
    """The first delay before a failed call is repeated; further delays double up to `retry_limit`."""
    retry_limit: float = 5.0
    canary: float = 10.0
    """How often the node sends a message to its own consumer."""
    canaries_missed: float = 3.0
    """Number of intervals without a canary after which the consumer is replaced."""
    consumer_start: float = 120.0
    """How long a new consumer may take to receive its first canary, because its imports are slow on a busy
    machine. The node polls meanwhile."""
    suggestion: float = 55.0
    """Below the lease of a request for suggestions: a later answer would be rejected."""
    housekeeping: float = 60.0
    """How often idle processes and old compiled programs are looked for."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Read `TRAINYARD_NODE_<FIELD>` for each field that is set.

        Raises:
            ValueError: a value is no positive number, or its field is fixed.
        """
        for name in FIXED:
            if environment.get(variable := PREFIX + name.upper()):
                raise ValueError(f"{variable} cannot be set: remove it. All leases last {LEASE_SECONDS:g} s.")
        texts = {field.name: environment.get(PREFIX + field.name.upper()) for field in fields(cls)}
        return cls(**{name: _seconds(name, text) for name, text in texts.items() if text})

    @property
    def lease_validity(self) -> float:
        """Seconds after a renewal request during which the worker safely holds the attempt."""
        return self.lease - self.lease_margin


def _seconds(name: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = nan
    # Not a negative one, nor one that is no number: a loop would not pause.
    if not 0 <= seconds < inf:
        raise ValueError(f"{PREFIX}{name.upper()}={text!r}: give a number of seconds, such as 5")
    return seconds
