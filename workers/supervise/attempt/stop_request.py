"""Combines the owner's pause or stop with the node's drain into one request to the runner."""

import asyncio
from typing import Literal

from jobs.messages.events import Yielded
from jobs.states import Desired, Outcome
from workers.supervise.attempt_end import AttemptEnd

YieldReason = Literal["pause", "stop"]


class StopRequest:
    """Why a running attempt must yield, if at all. A stop takes precedence over a pause."""

    def __init__(self) -> None:
        self._desired = Desired.RUNNING
        self._draining = False
        self._requested = asyncio.Event()

    def set_desired(self, desired: Desired) -> None:
        """Set the owner's desired state.

        A runner that was asked to yield does so even if the owner resumes the job meanwhile; the job then
        continues in a new attempt.
        """
        if desired is Desired.RUNNING and self._desired is Desired.PAUSED:
            self._desired = desired
        elif desired is Desired.STOPPED or (desired is Desired.PAUSED and self._desired is Desired.RUNNING):
            self._desired = desired
            self._requested.set()

    def drain(self) -> None:
        """Request a yield because the node shuts down."""
        self._draining = True
        self._requested.set()

    @property
    def requested(self) -> bool:
        """Whether the runner must yield."""
        return self._requested.is_set()

    async def wait(self) -> None:
        """Wait until the runner must yield."""
        await self._requested.wait()

    @property
    def reason(self) -> YieldReason:
        """The reason to send to the runner."""
        return "pause" if self._desired is Desired.PAUSED and not self._draining else "stop"

    def ending(self) -> AttemptEnd:
        """Return the end for an attempt that yielded as requested. The owner's request takes precedence."""
        if self._desired is Desired.RUNNING:
            return AttemptEnd.drained() if self._draining else AttemptEnd.resumed()
        return AttemptEnd(Outcome.PAUSED if self._desired is Desired.PAUSED else Outcome.STOPPED)

    def end_after(self, event: Yielded) -> AttemptEnd:
        """Return the end for an attempt whose runner reported that it yielded."""
        if self.requested:
            return self.ending()
        message = f"Another process asked the runner to {event.why}; the run resumes from its checkpoint."
        return AttemptEnd(Outcome.LOST, "runner_terminated", message)
