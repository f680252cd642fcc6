"""The state of the scheduler's loop, for its probes and metrics."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from prometheus_client.core import Metric, SummaryMetricFamily

from jobs.monitoring.families import counter, gauge
from jobs.monitoring.status import Checks

HANGING_SECONDS = 120.0
"""A pass over many jobs, or one whose statements wait for a silent database, takes less."""
READY_SECONDS = 30.0


@dataclass
class SchedulerState:
    """The passes of one scheduler. Its loop writes, and the thread of the status address reads.

    Attributes:
        turned: the monotonic time at which the loop began its last turn.
        succeeded: the monotonic time of the last turn in which the database answered.
        is_leader: whether it had the lease then.
        passes, failed: turns as the leader, and turns without the database.
        seconds: what these turns took together.
    """

    turned: float = field(default_factory=time.monotonic)
    succeeded: float = float("-inf")
    is_leader: bool = False
    passes: int = 0
    failed: int = 0
    seconds: float = 0.0

    def turn(self) -> None:
        """Note that the loop turns."""
        self.turned = time.monotonic()

    def finish(self, *, is_leader: bool) -> None:
        """Note a turn in which the database answered."""
        self.succeeded, self.is_leader = time.monotonic(), is_leader
        if is_leader:
            self.passes += 1
            self.seconds += self.succeeded - self.turned

    def fail(self) -> None:
        """Note a turn without the database."""
        self.failed += 1
        self.is_leader = False

    @property
    def checks(self) -> Checks:
        """Whether the loop turns and reaches the database. One without the lease is ready: it takes over."""
        return Checks(self._hanging, self._missing)

    def _hanging(self) -> str | None:
        silent = time.monotonic() - self.turned
        if silent < HANGING_SECONDS:
            return None
        return f"the scheduler's loop has not turned for {silent:.0f} s"

    def _missing(self) -> Sequence[str]:
        return [] if time.monotonic() - self.succeeded < READY_SECONDS else ["database"]

    def families(self) -> Iterator[Metric]:
        """Yield the metrics. The counters begin with the process."""
        yield gauge("trainyard_scheduler_leader", "Whether this scheduler has the lease.", self.is_leader)
        yield gauge(
            "trainyard_scheduler_loop_age_seconds",
            "Time since the loop began its last turn.",
            time.monotonic() - self.turned,
        )
        passes = SummaryMetricFamily("trainyard_scheduler_pass_seconds", "Turns of the loop with the lease.")
        passes.add_metric([], count_value=self.passes, sum_value=self.seconds)
        yield passes
        yield counter("trainyard_scheduler_failed_passes", "Turns without the database.", self.failed)
