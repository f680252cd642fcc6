"""One task on one runner: everything it says is recorded, everything it must not do is noticed."""

import asyncio
import signal
import time
from collections.abc import Callable, Coroutine
from typing import Any

from pydantic import ValidationError

from jobs.contracts.control import Start, Yield
from jobs.contracts.events import (
    RUNNER_EVENT,
    ArtifactWritten,
    CheckpointCommitted,
    ExecutionDone,
    Failed,
    Log,
    Metric,
    Points,
    Progress,
    Result,
    RunnerEvent,
    Started,
    TrialBegun,
    TrialDone,
    Yielded,
)
from workers.supervise.endings import Ending
from workers.supervise.orders import Orders
from workers.supervise.process import RunnerProcess
from workers.supervise.recorder import Recorder
from workers.supervise.rival_scores import News
from workers.supervise.stall_detector import Silence
from workers.supervise.timing import Timing
from workers.supervise.usage import ProcessTree, Usage

# A line of the log is no progress: a loop that hangs may still print.
PROGRESS = (Progress, Metric, Points, ExecutionDone, TrialDone, CheckpointCommitted, ArtifactWritten)
MOST_COMPLAINTS = 20
LOOKS_A_SAMPLE = 4
"""Memory grows faster than charts need points: look more often than there are samples."""


class Session:
    """Made for one attempt. `end` is told how it ended, by whoever notices first; later calls are ignored."""

    def __init__(
        self,
        runner: RunnerProcess,
        recorder: Recorder,
        orders: Orders,
        news: News,
        timing: Timing,
        *,
        memory_cap: int,
        end: Callable[[Ending], None],
    ) -> None:
        self._runner = runner
        self._recorder = recorder
        self._orders = orders
        self._news = news
        self._timing = timing
        self._memory_cap = memory_cap
        self._end = end
        self._silence = Silence(timing)
        self._started = asyncio.Event()
        self._complaints = 0
        self._trial: int | None = None
        self._last_word: RunnerEvent | None = None

    async def serve(self, start: Start, ending: "asyncio.Future[Ending]") -> bool:
        """Run the task until `ending` is known; a runner that did not end by itself is killed.

        Returns:
            Whether the runner may serve another task: a failed one may have left anything behind.
        """
        for file in self._runner.logs:
            file.begin()
        self._runner.listen(self._hear)
        watchers = [self._spawn(watch()) for watch in self._watches()]
        try:
            self._runner.tell(start)
            self._recorder.tell = self._runner.tell
            await asyncio.wait({ending})
        finally:
            self._recorder.tell = None
            for watcher in watchers:
                watcher.cancel()
            if self._last_word is None:
                await self._runner.end()
            self._guarded(lambda: self._read_logs(last=True))
            self._runner.listen(None)
        return isinstance(self._last_word, Result | Yielded)

    def _watches(self) -> tuple[Callable[[], Coroutine[Any, Any, None]], ...]:
        watched = (self._await_end, self._follow_logs, self._measure, self._watch_silence)
        return (*watched, self._obey, self._tell_news)

    def _spawn(self, watch: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(watch)
        task.add_done_callback(self._on_watch_over)
        return task

    def _on_watch_over(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._end(Ending.because(error))

    def _guarded(self, step: Callable[[], None]) -> None:
        """Do a step that writes to the disk; a full disk ends the attempt."""
        try:
            step()
        except OSError as error:
            self._end(Ending.because(error))

    # What the runner says

    def _hear(self, line: bytes) -> None:
        if self._last_word is not None:
            return  # nothing it says after its last word belongs to anybody
        try:
            event = RUNNER_EVENT.validate_json(line)
        except ValidationError as error:
            why = error.errors(include_url=False, include_input=False)[0]["msg"]
            self._guarded(lambda: self._complain(line, why))
            return
        match event:
            case Yielded():
                self._last_word = event
                self._end(self._orders.judge(event))
            case Result() | Failed():
                self._last_word = event
                self._end(Ending.said(event))
            case _:
                self._note_progress(event)
                self._guarded(lambda: self._recorder.add_line(line))

    def _note_progress(self, event: RunnerEvent) -> None:
        if isinstance(event, Started):
            self._started.set()
            self._silence.forgive()  # imports are over; data and compilation are still to come
        elif isinstance(event, TrialBegun):
            self._trial = event.trial
            self._silence.begin_anew()
        elif isinstance(event, PROGRESS):
            self._silence.broken()

    def _complain(self, line: bytes, why: str) -> None:
        self._complaints += 1
        if self._complaints <= MOST_COMPLAINTS:
            text = f"an event of {len(line)} bytes is not understood ({why}): {line[:200]!r}"
            self._recorder.add(Log(time=time.time(), level="warning", source="worker", line=text))

    async def _await_end(self) -> None:
        status = await asyncio.shield(self._runner.ended)
        await self._runner.heard_all()  # its last word may still be in the pipe
        self._end(Ending.died(status))

    async def _follow_logs(self) -> None:
        while True:
            await asyncio.sleep(self._timing.watch)
            self._read_logs()

    def _read_logs(self, *, last: bool = False) -> None:
        for file in self._runner.logs:
            for event in file.new_lines(last=last):
                self._recorder.add(event.model_copy(update={"trial": self._trial}))

    # What it must not do

    async def _measure(self) -> None:
        tree, began, peak = ProcessTree(self._runner.pid), time.monotonic(), 0
        while True:
            looks = []
            for _ in range(LOOKS_A_SAMPLE):
                await asyncio.sleep(self._timing.sample / LOOKS_A_SAMPLE)
                looks.append(await asyncio.to_thread(tree.measure))
                peak = max(peak, looks[-1].memory)
                if peak > self._memory_cap:
                    self._end(Ending.out_of_memory(cap=self._memory_cap, peak=peak))
                    return
            cpu = sum(look.cpu_percent for look in looks) / len(looks)
            sample = Usage(cpu, max(look.memory for look in looks))
            metric = sample.as_metric(round(time.monotonic() - began, 1))
            self._recorder.add(metric.model_copy(update={"trial": self._trial}))

    async def _watch_silence(self) -> None:
        looked = time.monotonic()
        while not self._silence.too_long:
            await asyncio.sleep(self._timing.watch)
            looked, before = time.monotonic(), looked
            if looked - before > 1.0 + 4 * self._timing.watch:
                self._silence.forgive()  # we were stopped ourselves, and heard nothing
        silent = self._silence.seconds
        self._runner.signal(signal.SIGUSR1)  # faulthandler writes all stacks to stderr, which is the log
        await asyncio.sleep(self._timing.stack_dump)
        self._end(Ending.hung(silent))

    async def _obey(self) -> None:
        await self._orders.wait()
        deadline = time.monotonic() + self._timing.grace
        while time.monotonic() < deadline:
            self._runner.tell(Yield(why=self._orders.why))
            await asyncio.sleep(min(self._timing.nag, self._timing.grace))
        self._end(Ending.overdue(self._orders.ending(), self._timing.grace))

    async def _tell_news(self) -> None:
        await self._started.wait()  # what it hears before, a runner takes for an earlier task's
        await self._news.follow(self._runner.tell)
