"""One task after another: what a runner's process does with its life."""

import gc
import os
import time

from jobs.contracts.control import Rehearse, Start
from jobs.contracts.events import Failed, Ready, Result, RunnerEvent, Started, Yielded
from jobs.contracts.task import Task
from workers.engine.report import Yielding
from workers.runner.control_reader import Inbox
from workers.runner.environment import Environment, read_task
from workers.runner.event_reporter import Speaker
from workers.runner.event_writer import Outlet
from workers.runner.failures import describe
from workers.runner.libraries import configure_jax, import_keras
from workers.runner.parent_death import name_process
from workers.runner.record import make_record
from workers.runner.registry import WITHOUT_JAX, load
from workers.runner.resume import newest_step


class Runner:
    """Serves tasks until told to end.

    The first task that needs JAX fixes the process environment; in a fork, its server has done so before, and
    whoever asks for a fork asks the server of the right one.
    """

    def __init__(self, outlet: Outlet, inbox: Inbox) -> None:
        self._outlet = outlet
        self._inbox = inbox
        self._environment: Environment | None = None
        self._frozen = False

    def serve(self) -> None:
        """Run one task after another."""
        while (order := self._inbox.next_start()) is not None:
            self._inbox.begin()
            final = self._rehearse(order) if isinstance(order, Rehearse) else self._final_event(order)
            self._outlet.flush()
            self._inbox.be_idle()
            self._outlet.send(final)
            self._outlet.flush()

    def _rehearse(self, order: Rehearse) -> Ready | Failed:
        """Get warm for a task that nobody has given yet."""
        from workers.runner import standby

        self._environment = standby.environment_of(order)
        try:
            standby.rehearse(order)
        except Exception as error:  # noqa: BLE001  as with a task: whatever it was, the supervisor must hear of it
            return describe(error, time.time())
        return Ready(time=time.time())

    def _final_event(self, start: Start) -> RunnerEvent:
        """Run the task and say how it ended: the one handler round every run."""
        try:
            task = read_task(start.task)
            if (refusal := self._refusal(task)) is not None:
                return refusal
            result = self._run(task)
            return Result(time=time.time(), result=result)
        except Yielding as request:
            return Yielded(time=time.time(), why=request.why)
        except Exception as error:  # noqa: BLE001  whatever it was, the supervisor must hear of it
            return describe(error, time.time())

    def _freeze_libraries(self) -> None:
        """Keras collects garbage for each model: without the libraries in 0.02 s instead of 0.3.

        Once only: what a task leaves behind, such as models kept for the next, must stay collectable.
        """
        if not self._frozen:
            gc.freeze()
            self._frozen = True

    def _refusal(self, task: Task) -> Failed | None:
        """Refuse a task whose environment this process cannot give any more."""
        needed = Environment.of(task)
        if task.kind in WITHOUT_JAX or self._environment in (None, needed):
            return None
        message = f"this process was started for {self._environment}, the task needs {needed}"
        return Failed(time=time.time(), code="environment", message=message)

    def _run(self, task: Task) -> dict[str, object]:
        environment = Environment.of(task)
        if task.kind not in WITHOUT_JAX:
            if self._environment is None:
                environment.apply()
                self._environment = environment
            spec = getattr(task, "spec", None)
            configure_jax(task.compile_cache, "default" if spec is None else spec.precision.matmul)
            import_keras()
        os.makedirs(task.folder, exist_ok=True)  # noqa: PTH103
        run = load(task)
        self._freeze_libraries()
        record = make_record(task, environment)
        name_process("ty-runner")
        self._outlet.send(Started(time=time.time(), record=record, resumed_from=newest_step(task)))
        return run(task, Speaker(self._outlet, self._inbox, task.folder))
