"""Runs one task on one runner: records its events and enforces memory, progress and yield limits."""

import asyncio
import signal
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from pydantic import ValidationError

from jobs.messages.control import Recorded, Start, Yield
from jobs.messages.event_cost import MESSAGE_COST, cost_of
from jobs.messages.events import (
    PROGRESS_AXES,
    RUNNER_EVENT,
    ArtifactWritten,
    CheckpointCommitted,
    ExecutionDone,
    Failed,
    Log,
    Metric,
    Phase,
    Points,
    Progress,
    Result,
    RunnerEvent,
    Started,
    TrialBegun,
    TrialDone,
    Warned,
    Yielded,
)
from workers.supervise.attempt.gpu_watch import GpuWatch
from workers.supervise.attempt.held_lease import HeldLease
from workers.supervise.attempt.rival_curves import RivalCurveSender
from workers.supervise.attempt.stop_request import StopRequest
from workers.supervise.attempt.suspension import follow_lease, was_suspended
from workers.supervise.attempt_end import AttemptEnd
from workers.supervise.events.event_pace import EventPace
from workers.supervise.events.event_recorder import EventRecorder
from workers.supervise.events.log_quota import within_quota
from workers.supervise.events.nul_characters import without_nul
from workers.supervise.limits.limits import TaskLimits
from workers.supervise.limits.sandbox_end import end_of_breach, end_of_process
from workers.supervise.limits.stall_detector import StallDetector
from workers.supervise.pool.runner_process import RunnerProcess
from workers.supervise.timing import Timing
from workers.system.usage import Usage

# Log lines do not count as progress: a run that hangs in a loop may still print.
PROGRESS = (Progress, Metric, Points, ExecutionDone, TrialDone, CheckpointCommitted, ArtifactWritten)
# Reported for each task; a program that writes garbage to the pipe must not fill the log.
MAX_INVALID_LINES = 20
# Memory can exceed its cap quickly, so it is measured more often than charts need samples.
MEASUREMENTS_PER_SAMPLE = 4


class RunnerSession:
    """One attempt's task on one runner. Several watchers may call `end`; the first call counts.

    Args:
        runner: has no task at present.
        recorder: gets the runner's events and log lines.
        stop_request: asks the run to yield.
        lease: suspends the run.
        rival_curves: sends the runner the curves from other runners' trials.
        pace: delays reading above the project's event quota.
        timing: intervals and time limits.
        memory_cap: the most memory that the run may use, in bytes.
        limits: for a task that reads a file from outside; None for other tasks.
        gpus: watches the run's GPUs.
        end: ends the attempt.
    """

    def __init__(
        self,
        runner: RunnerProcess,
        recorder: EventRecorder,
        stop_request: StopRequest,
        lease: HeldLease,
        rival_curves: RivalCurveSender,
        pace: EventPace,
        timing: Timing,
        *,
        memory_cap: int,
        limits: TaskLimits | None,
        gpus: GpuWatch,
        end: Callable[[AttemptEnd], None],
    ) -> None:
        self._runner = runner
        self._recorder = recorder
        self._stop_request = stop_request
        self._lease = lease
        self._rival_curves = rival_curves
        self._pace = pace
        self._was_paused = False
        self._timing = timing
        self._memory_cap = memory_cap
        self._limits = limits
        self._gpus = gpus
        self._end = end
        self._stall_detector = StallDetector(timing)
        self._started = asyncio.Event()
        self._invalid_lines = 0
        self._trial: int | None = None
        self._final_event: RunnerEvent | None = None

    async def serve(self, start: Start, ending: "asyncio.Future[AttemptEnd]") -> bool:
        """Run the task until `ending` is set. A runner that sent no final event is killed.

        Returns:
            Whether the runner may serve another task. After a failure it may be in an unknown state, and the
            kernel limits for a task cannot be raised again.
        """
        if self._limits is not None:
            own_user = self._runner.access is not None
            limits = self._limits.process_limits(memory=self._memory_cap, own_user=own_user)
            start = start.model_copy(update={"limits": limits})
        for file in self._runner.logs:
            file.start_attempt()
        self._runner.set_listener(self._on_line, self._pause)
        watches = (
            self._await_exit,
            self._follow_logs,
            self._measure,
            self._watch_progress,
            self._request_yield,
            self._send_rival_curves,
            self._follow_lease,
        )
        watchers = [asyncio.create_task(watch()) for watch in watches]
        for watcher in watchers:
            watcher.add_done_callback(self._on_watcher_done)
        try:
            # After the watchers exist: a runner that ends at once must be noticed.
            await self._send_start(start, ending)
            self._recorder.notify_runner = self._send_recorded
            await asyncio.wait({ending})
        finally:
            self._recorder.notify_runner = None
            for watcher in watchers:
                watcher.cancel()
            # Before the last log lines are read: the runner may print until it ends.
            if self._final_event is None:
                await self._runner.end()
            else:
                self._runner.resume()  # for its next task; this one is over
            self._guarded(lambda: self._read_logs(last=True))
            self._runner.set_listener(None)
        if (sandbox := self._runner.sandbox) is not None and sandbox.watch.ended is not None:
            return False
        return self._limits is None and isinstance(self._final_event, Result | Yielded)

    async def _send_start(self, start: Start, ending: "asyncio.Future[AttemptEnd]") -> None:
        """Begin the task, unless the attempt ends while its run must not begin."""
        allowed = asyncio.create_task(self._lease.until_allowed())
        first: list[asyncio.Future[Any]] = [allowed, ending]
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        if allowed.done():
            self._runner.send(start)
        allowed.cancel()

    def _send_recorded(self, recorded: Recorded) -> None:
        sandbox = self._runner.sandbox
        if sandbox is not None and sandbox.checkpoints is not None:
            recorded = sandbox.checkpoints.recorded(recorded)
        self._runner.send(recorded)

    def _on_watcher_done(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._end(AttemptEnd.from_error(error))

    def _guarded(self, step: Callable[[], None]) -> None:
        """Do a step that writes to the disk. A full disk ends the attempt."""
        try:
            step()
        except OSError as error:
            self._end(AttemptEnd.from_error(error))

    # Events of the runner

    def _on_line(self, line: bytes) -> None:
        # Threads of a task may write after its final event, and then belong to no task.
        if self._final_event is not None:
            return
        line = without_nul(line)
        try:
            event = RUNNER_EVENT.validate_json(line)
        except ValidationError as error:
            self._pace.spend(MESSAGE_COST)
            reason = error.errors(include_url=False, include_input=False)[0]["msg"]
            self._guarded(lambda: self._report_invalid_line(line, reason))
            return
        self._pace.spend(cost_of(event))
        match event:
            case Yielded():
                self._final_event = event
                self._end_after_yield(event)
            case Failed() if self._limits is not None:
                self._final_event = event
                self._end(self._limits.end_of_failure(event, self._memory_cap))
            case Result() | Failed():
                self._final_event = event
                self._end(AttemptEnd.from_event(event))
            case _:
                self._note_progress(event)
                self._guarded(lambda: self._recorder.add_line(line, event))

    def _end_after_yield(self, event: Yielded) -> None:
        # A signal to the runner was probably for all processes of this service: the node, which drains then,
        # may receive it a little later.
        delay = 0.0 if self._stop_request.requested else self._timing.same_signal
        asyncio.get_running_loop().call_later(delay, lambda: self._end(self._stop_request.end_after(event)))

    def _note_progress(self, event: RunnerEvent) -> None:
        if isinstance(event, Started):
            self._started.set()
            self._stall_detector.reset_timer()  # imports are done; data and compilation follow
        elif isinstance(event, TrialBegun):
            self._trial = event.trial
            self._stall_detector.restart()
        elif isinstance(event, Phase):
            self._stall_detector.phase_began()
        elif isinstance(event, PROGRESS):
            self._stall_detector.progress_made()
            if isinstance(event, Metric | Points) and event.x in PROGRESS_AXES:
                self._stall_detector.epoch_ended()

    def _pause(self) -> float:
        """Return for how long the runner's events are not read, because its project's quota is reached."""
        seconds = self._pace.delay()
        if seconds and not self._was_paused:
            self._was_paused = True
            self._guarded(lambda: self._recorder.add(_over_quota()))
        return seconds

    def _report_invalid_line(self, line: bytes, reason: str) -> None:
        self._invalid_lines += 1
        if self._invalid_lines <= MAX_INVALID_LINES:
            text = f"an event of {len(line)} bytes is invalid ({reason}): {line[:200]!r}"
            self._recorder.add(Log(time=time.time(), level="warning", source="worker", line=text))

    async def _await_exit(self) -> None:
        # Shielded: `ended` belongs to the process, which outlives this watcher.
        status = await asyncio.shield(self._runner.ended)
        # Its final event may still be in the pipe.
        await self._runner.wait_until_read()
        # After a signal a runner ends by itself. The attempt ends with its event then.
        if not isinstance(self._final_event, Yielded):
            self._end(self._end_of_process(status))

    def _end_of_process(self, status: int) -> AttemptEnd:
        if (sandbox := self._runner.sandbox) is not None:
            if (ended := sandbox.watch.ended) is not None:
                return end_of_breach(ended)
            printed = self._runner.logs[1].tail()
            return end_of_process(status, began=self._started.is_set(), printed=printed)
        return AttemptEnd.runner_died(status) if self._limits is None else self._limits.end_of_process(status)

    async def _follow_logs(self) -> None:
        while True:
            await asyncio.sleep(self._timing.watch)
            self._read_logs()

    def _read_logs(self, *, last: bool = False) -> None:
        for file in self._runner.logs:
            for event in within_quota(file.new_lines(last=last), self._pace):
                self._recorder.add(event)

    # Lease and limits

    async def _follow_lease(self) -> None:
        async for seconds in follow_lease(self._lease, self._runner):
            self._stall_detector.reset_timer()
            self._guarded(partial(self._recorder.add, was_suspended(seconds)))
        self._end(AttemptEnd.lease_lost())

    async def _measure(self) -> None:
        tree, began, peak = self._runner.tree(), time.monotonic(), 0
        while True:
            samples = []
            for _ in range(MEASUREMENTS_PER_SAMPLE):
                await asyncio.sleep(self._timing.sample / MEASUREMENTS_PER_SAMPLE)
                samples.append(await asyncio.to_thread(tree.measure))
                peak = max(peak, samples[-1].memory)
                seconds = time.monotonic() - began - self._lease.seconds_suspended
                if (ending := self._violation(samples[-1], peak, seconds)) is not None:
                    self._end(ending)
                    return
            cpu = sum(sample.cpu_percent for sample in samples) / len(samples)
            usage = Usage(cpu, max(sample.memory for sample in samples))
            second = round(time.monotonic() - began, 1)
            points, warnings = await self._gpus.look(second)
            metric = usage.as_metric(second, points)
            self._recorder.add(metric.model_copy(update={"trial": self._trial}))
            for warning in warnings:
                self._recorder.add(warning)

    def _violation(self, usage: Usage, peak: int, seconds: float) -> AttemptEnd | None:
        """Return the end for a run that is above one of its limits."""
        if peak > self._memory_cap:
            if self._limits is not None:
                return self._limits.out_of_memory(self._memory_cap)
            return AttemptEnd.out_of_memory(cap=self._memory_cap, peak=peak)
        return None if self._limits is None else self._limits.exceeded(usage, seconds=seconds)

    async def _watch_progress(self) -> None:
        last_check = time.monotonic()
        while not self._stall_detector.stalled:
            await asyncio.sleep(self._timing.watch)
            before, last_check = last_check, time.monotonic()
            # This process or the run was suspended, or no events were read for the quota: the silence is not
            # the runner's.
            paused = self._lease.suspended or self._pace.delay()
            if last_check - before > 1.0 + 4 * self._timing.watch or paused:
                self._stall_detector.reset_timer()
        silent = self._stall_detector.seconds_silent
        # The runner's faulthandler writes all stack traces to stderr, which is logged.
        self._runner.signal(signal.SIGUSR1)
        await asyncio.sleep(self._timing.stack_dump)
        self._end(AttemptEnd.hung(silent))

    async def _request_yield(self) -> None:
        await self._stop_request.wait()
        # Events that wait in the pipe must not delay its last checkpoint.
        self._pace.lift()
        deadline = time.monotonic() + self._timing.grace
        while time.monotonic() < deadline:
            # Repeated, because a runner that starts a task drops earlier requests.
            self._runner.send(Yield(why=self._stop_request.reason))
            await asyncio.sleep(min(self._timing.nag, self._timing.grace))
        self._end(AttemptEnd.grace_expired(self._stop_request.ending(), self._timing.grace))

    async def _send_rival_curves(self) -> None:
        # A runner that starts a task drops the curves that arrived before, as those of an earlier task.
        await self._started.wait()
        await self._rival_curves.run(self._runner.send)


def _over_quota() -> Warned:
    message = (
        "This run sent more events a second than its share of the quota of the project. It waited, and lines "
        "of its output may be missing. Report metrics less often, print less, or ask an administrator of the "
        "installation to raise the quota."
    )
    return Warned(time=time.time(), code="events_over_quota", message=message)
