"""What is wanted of a running attempt, by its owner and by the node."""

import asyncio
from typing import Literal

from jobs.contracts.events import Yielded
from jobs.states import Desired, Outcome
from workers.supervise.endings import Ending

Why = Literal["pause", "stop"]


class Orders:
    """The owner may want a pause or a stop; the node may want to leave. Stopping outranks pausing."""

    def __init__(self) -> None:
        self._wanted = Desired.RUNNING
        self._leaving = False
        self._given = asyncio.Event()

    def want(self, desired: Desired) -> None:
        """The owner wants this. A runner once told to yield does so; after that, a resumed run goes on."""
        if desired is Desired.RUNNING and self._wanted is Desired.PAUSED:
            self._wanted = desired
        elif desired is Desired.STOPPED or (desired is Desired.PAUSED and self._wanted is Desired.RUNNING):
            self._wanted = desired
            self._given.set()

    def leave(self) -> None:
        """The node shuts down."""
        self._leaving = True
        self._given.set()

    @property
    def given(self) -> bool:
        """Whether the runner shall yield."""
        return self._given.is_set()

    async def wait(self) -> None:
        """Wait until the runner shall yield."""
        await self._given.wait()

    @property
    def why(self) -> Why:
        """What to tell the runner."""
        return "pause" if self._wanted is Desired.PAUSED and not self._leaving else "stop"

    def ending(self) -> Ending:
        """Return how an attempt ends that did what was ordered. The owner's wish outranks the node's."""
        if self._wanted is Desired.RUNNING:
            return Ending.drained() if self._leaving else Ending.resumed()
        return Ending(Outcome.PAUSED if self._wanted is Desired.PAUSED else Outcome.STOPPED)

    def judge(self, event: Yielded) -> Ending:
        """Return how an attempt ends whose runner said that it yielded."""
        if self.given:
            return self.ending()
        message = f"The runner was told by somebody else to {event.why}; it goes on from its checkpoint."
        return Ending(Outcome.LOST, "runner_terminated", message)
