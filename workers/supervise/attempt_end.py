"""Describes how an attempt ended: outcome, error code, and the message shown to users."""

import errno
import logging
import signal
import traceback
from dataclasses import dataclass
from typing import Any, Self

from jobs.errors import StaleFence, StoreUnavailable, TrainyardError
from jobs.messages.events import Failed, Result, Yielded
from jobs.states import Outcome
from workers.confinement.sandbox.launch import SandboxRefused
from workers.system.exit_status import describe_status

OUTCOME_OF_YIELD = {"pause": Outcome.PAUSED, "stop": Outcome.STOPPED}
GIB = 2**30
DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
# Codes of failures that the machine caused, not the job. The attempt counts as lost, so the job resumes from
# its last checkpoint.
MACHINE_FAILURES = frozenset({"disk_full"})
# Limits on the characters that are stored with the attempt and the job.
MAX_MESSAGE = 2000
MAX_TRACEBACK = 20_000

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AttemptEnd:
    """An outcome with its cause.

    Attributes:
        outcome: how it ended.
        code: the stable code of the error; empty without an error.
        message: the cause, for users.
        traceback: the error's Python traceback; empty if it has none.
        result: the task's result if it is completed.
        owned: whether this worker still holds the attempt; otherwise it must not write the end.
    """

    outcome: Outcome
    code: str = ""
    message: str = ""
    traceback: str = ""
    result: dict[str, Any] | None = None
    owned: bool = True

    @property
    def error(self) -> dict[str, Any] | None:
        """The error as stored with the attempt and the job."""
        if not self.code:
            return None
        return {"code": self.code, "message": self.message, "traceback": self.traceback}

    @classmethod
    def from_event(cls, event: Result | Failed | Yielded) -> Self:
        """Return the end that the runner reported."""
        match event:
            case Result(result=result):
                return cls(Outcome.COMPLETED, result=result)
            case Failed(code=code, message=message, traceback=trace):
                outcome = Outcome.LOST if code in MACHINE_FAILURES else Outcome.FAILED
                return cls(outcome, code, message, trace)
            case Yielded(why=why):
                return cls(OUTCOME_OF_YIELD[why])

    @classmethod
    def runner_died(cls, status: int) -> Self:
        """The runner's process ended without a final event."""
        # The kernel's out-of-memory killer sends SIGKILL, and does not report it to the parent process.
        if status == -signal.SIGKILL:
            hint = " The system may have run out of memory; a memory cap would make this certain."
            return cls(Outcome.LOST, "runner_killed", f"The runner was killed from outside.{hint}")
        message = f"The runner ended {describe_status(status)} before its task was done."
        return cls(Outcome.LOST, "runner_died", message)

    @classmethod
    def out_of_memory(cls, *, cap: int, peak: int) -> Self:
        """The runner exceeded its memory cap; both in bytes."""
        message = (
            f"The run used {peak / GIB:.2f} GiB, above its cap of {cap / GIB:.2f} GiB. "
            "Use a smaller batch or model, or raise resources.memory_gib."
        )
        return cls(Outcome.FAILED, "out_of_memory", message)

    @classmethod
    def hung(cls, silent: float) -> Self:
        """The runner made no progress for `silent` seconds."""
        message = (
            f"The watchdog ended the run after {silent:.0f} s without progress; its stacks are in the log."
        )
        return cls(Outcome.LOST, "hung", message)

    @classmethod
    def grace_expired(cls, requested: Self, grace: float) -> Self:
        """The runner did not yield in time and was killed; its last checkpoint is used."""
        message = (
            f"The run wrote no checkpoint within {grace:.0f} s and was killed; its last checkpoint is kept."
        )
        # A drain has a code of its own, which ensures that it costs the job no restart.
        return cls(requested.outcome, requested.code or "grace_over", message)

    @classmethod
    def drained(cls) -> Self:
        """The node shuts down. The job resumes on another worker, and this costs it no restart."""
        return cls(Outcome.LOST, "drained", "The worker is shutting down; the run resumes on another worker.")

    @classmethod
    def resumed(cls) -> Self:
        """The owner resumed the job while the runner was pausing. This costs no restart, like a drain."""
        return cls(
            Outcome.LOST,
            "drained",
            "The run was resumed while it was pausing; it continues from its checkpoint.",
        )

    @classmethod
    def no_space(cls, detail: str) -> Self:
        """A disk on the worker is full."""
        return cls(
            Outcome.LOST, "no_space", f"The worker's disk is full: {detail}. The run will resume later."
        )

    @classmethod
    def gpu_held(cls, detail: str) -> Self:
        """Others have taken the memory of the GPUs since the placement. This costs the job no restart."""
        return cls(Outcome.LOST, "gpu_held", f"It waits in the queue again. {detail}"[:MAX_MESSAGE])

    @classmethod
    def lease_lost(cls) -> Self:
        """The lease was not renewed in time, and the run could not be suspended until it is."""
        return cls(
            Outcome.LOST,
            "lease_lost",
            "The worker lost contact with the database. The run could not be suspended and was ended.",
        )

    @classmethod
    def stale(cls) -> Self:
        """The attempt was reassigned or ended elsewhere: this worker must not write to it."""
        return cls(Outcome.LOST, "stale_fence", "The attempt is no longer held by this worker.", owned=False)

    @classmethod
    def from_error(cls, error: BaseException) -> Self:
        """Return the end for an error that was raised in the supervisor.

        An invalid job fails at once. An internal error counts as a loss and is retried like other losses.
        """
        if isinstance(error, StaleFence):
            return cls.stale()
        if isinstance(error, OSError) and error.errno in DISK_FULL:
            return cls.no_space(str(error))
        if isinstance(error, StoreUnavailable):
            return cls(Outcome.LOST, "store_unavailable", f"{error.message.rstrip('.')}."[:MAX_MESSAGE])
        if isinstance(error, SandboxRefused):
            return cls(Outcome.LOST, "sandbox_refused", f"{error}."[:MAX_MESSAGE])
        trace = "".join(traceback.format_exception(error))[-MAX_TRACEBACK:]
        if isinstance(error, TrainyardError):
            return cls(Outcome.FAILED, error.code, error.message[:MAX_MESSAGE], trace)
        # Values and files of the job raise ValueError: a retry would fail in the same way.
        if isinstance(error, ValueError):
            return cls(Outcome.FAILED, "bad_task", str(error)[:MAX_MESSAGE], trace)
        log.error("internal error while running an attempt", exc_info=error)
        message = f"The worker could not run the job: {type(error).__name__}: {error}"
        return cls(Outcome.LOST, "worker_error", message[:MAX_MESSAGE], trace)
