"""How an attempt ends, in the words that users and the scheduler get."""

import errno
import logging
import signal
import traceback
from dataclasses import dataclass
from typing import Any, Self

from jobs.contracts.events import Failed, Result, Yielded
from jobs.errors import StaleFence, TrainyardError
from jobs.states import Outcome

WHY_TO_OUTCOME = {"pause": Outcome.PAUSED, "stop": Outcome.STOPPED}
GIB = 2**30
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
OF_THE_MACHINE = frozenset({"disk_full"})
"""Failures that say nothing of the task: it goes on from its last checkpoint once there is room."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ending:
    """An outcome with its cause. `ours` is False when the attempt is no longer ours to finish."""

    outcome: Outcome
    code: str = ""
    message: str = ""
    traceback: str = ""
    result: dict[str, Any] | None = None
    ours: bool = True

    @property
    def error(self) -> dict[str, Any] | None:
        """The cause as stored with the attempt and the job."""
        if not self.code:
            return None
        return {"code": self.code, "message": self.message, "traceback": self.traceback}

    @classmethod
    def said(cls, event: Result | Failed | Yielded) -> Self:
        """The runner said how it ended."""
        match event:
            case Result(result=result):
                return cls(Outcome.COMPLETED, result=result)
            case Failed(code=code, message=message, traceback=trace):
                outcome = Outcome.LOST if code in OF_THE_MACHINE else Outcome.FAILED
                return cls(outcome, code, message, trace)
            case Yielded(why=why):
                return cls(WHY_TO_OUTCOME[why])

    @classmethod
    def died(cls, status: int) -> Self:
        """The runner ended without a last word."""
        if status == -signal.SIGKILL:
            hint = " The system may have run out of memory; a memory cap would name it."
            return cls(Outcome.LOST, "runner_killed", f"The runner was killed from outside.{hint}")
        how = f"by {_signal_name(-status)}" if status < 0 else f"with status {status}"
        return cls(Outcome.LOST, "runner_died", f"The runner ended {how} in the middle of its task.")

    @classmethod
    def out_of_memory(cls, *, cap: int, peak: int) -> Self:
        """The runner outgrew its cap; both in bytes."""
        message = (
            f"The run used {peak / GIB:.2f} GiB, above its cap of {cap / GIB:.2f} GiB. "
            "Use a smaller batch or model, or raise resources.memory_gib."
        )
        return cls(Outcome.FAILED, "out_of_memory", message)

    @classmethod
    def hung(cls, silent: float) -> Self:
        """The runner made no progress for `silent` seconds."""
        message = f"The run made no progress for {silent:.0f} s; its stacks are in the log."
        return cls(Outcome.LOST, "hung", message)

    @classmethod
    def overdue(cls, ordered: Self, grace: float) -> Self:
        """The runner did not yield in time and was killed: as ordered, from its last checkpoint."""
        message = f"The run wrote no checkpoint within {grace:.0f} s and was ended; its last one stands."
        return cls(ordered.outcome, ordered.code or "grace_over", message)

    @classmethod
    def drained(cls) -> Self:
        """The node leaves; the attempt goes on elsewhere, and this counts as nobody's fault."""
        return cls(Outcome.LOST, "drained", "The worker is shutting down; the run goes on elsewhere.")

    @classmethod
    def resumed(cls) -> Self:
        """The owner took a pause back while the runner was at it. Costs no restart, like a drain."""
        return cls(
            Outcome.LOST, "drained", "The run was resumed while it paused; it goes on from its checkpoint."
        )

    @classmethod
    def no_space(cls, detail: str) -> Self:
        """A disk is full."""
        return cls(
            Outcome.LOST, "no_space", f"The worker's disk is full: {detail}. The run will go on later."
        )

    @classmethod
    def lease_lost(cls) -> Self:
        """We could not renew in time and stopped before anybody else may start."""
        return cls(
            Outcome.LOST, "lease_lost", "The worker lost contact with the database and stopped the run."
        )

    @classmethod
    def stale(cls) -> Self:
        """Somebody else has the attempt, or it was ended: nothing of ours may be written."""
        return cls(Outcome.LOST, "stale_fence", "The attempt is no longer this worker's.", ours=False)

    @classmethod
    def because(cls, error: BaseException) -> Self:
        """Something was raised on our side: a lost fence, a full disk, an impossible job, or our own fault.

        What is impossible fails at once; our own fault is a loss, tried again as often as losses are.
        """
        if isinstance(error, StaleFence):
            return cls.stale()
        if isinstance(error, OSError) and error.errno in FULL:
            return cls.no_space(str(error))
        trace = "".join(traceback.format_exception(error))[-20_000:]
        if isinstance(error, TrainyardError):
            return cls(Outcome.FAILED, error.code, error.message[:2000], trace)
        if isinstance(error, ValueError):  # values or files that do not hold
            return cls(Outcome.FAILED, "bad_task", str(error)[:2000], trace)
        log.error("an attempt could not be run", exc_info=error)
        message = f"The worker could not run this: {type(error).__name__}: {error}"
        return cls(Outcome.LOST, "worker_error", message[:2000], trace)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
