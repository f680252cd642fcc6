"""Serves tasks: runs one after another and reports how each ended."""

import gc
import os
import time

from jobs.messages.control import Rehearse, Start
from jobs.messages.events import Failed, Ready, Result, RunnerEvent, Started, Yielded
from jobs.messages.task import Task
from jobs.spec.policies import needs_double
from workers.engine.report import TaskInterrupted
from workers.engine.training.checkpoint import newest_intact
from workers.runner.accelerator import use_accelerator
from workers.runner.control_reader import ControlReader
from workers.runner.environment import Environment, read_task
from workers.runner.event_reporter import EventReporter
from workers.runner.event_writer import EventWriter
from workers.runner.failures import describe, describe_exit
from workers.runner.libraries import configure_jax, import_keras, set_number_type
from workers.runner.registry import load, needs_jax, runs_program
from workers.runner.reproducibility import make_record
from workers.system.kernel import set_process_name


class Runner:
    """Serves tasks until the control stream ends.

    The first task that needs JAX fixes the process environment. In a forked runner, the fork server has set
    the same environment before: the supervisor chooses the fork server by the task's environment.
    """

    def __init__(self, writer: EventWriter, control: ControlReader) -> None:
        self._writer = writer
        self._control = control
        self._environment: Environment | None = None
        self._frozen = False

    def serve(self) -> None:
        while (request := self._control.next_task()) is not None:
            self._control.reset()
            final = self._final_event(request)
            self._writer.flush()
            # Before the final event is sent: the supervisor may close the control stream at once when it
            # reads it, and a busy runner would exit with an error.
            self._control.mark_idle()
            self._writer.send(final)
            self._writer.flush()

    def _final_event(self, request: Rehearse | Start) -> RunnerEvent | Ready:
        """Serve a request and return its final event. Every exception in a task is handled here."""
        try:
            return self._warm_up(request) if isinstance(request, Rehearse) else self._run_task(request)
        except TaskInterrupted as interruption:
            return Yielded(time=time.time(), why=interruption.reason)
        # User code may call `sys.exit`. Without this, the process would end without a word.
        except SystemExit as error:
            return describe_exit(error, time.time())
        # A task may run user code, which may raise anything. Every error is reported to the supervisor.
        except Exception as error:  # noqa: BLE001
            return describe(error, time.time())

    def _warm_up(self, request: Rehearse) -> Ready:
        """Prepare for tasks in an environment before there is one."""
        # Only standbys need it, and other runners start faster without it.
        from workers.runner import standby

        self._environment = standby.environment_of(request)
        standby.warm_up(request)
        return Ready(time=time.time())

    def _run_task(self, start: Start) -> Result | Failed:
        """Run a task, unless it needs another process."""
        if start.limits is not None:
            # Only tasks with limits need it, and other runners start faster without it.
            from workers.runner import kernel_limits

            kernel_limits.apply(start.limits)
        task = read_task(start.task)
        if (refusal := self._refusal(task)) is not None:
            return refusal
        result = self._run(task)
        return Result(time=time.time(), result=result)

    def _refusal(self, task: Task) -> Failed | None:
        """Return a failure if the task needs another environment than this process has."""
        needed = Environment.for_task(task)
        if not needs_jax(task) or self._environment in (None, needed):
            return None
        message = f"this process was started for {self._environment}, but the task needs {needed}"
        return Failed(time=time.time(), code="environment", message=message)

    def _run(self, task: Task) -> dict[str, object]:
        environment = Environment.for_task(task)
        if needs_jax(task):
            if self._environment is None:
                environment.apply()
                self._environment = environment
            spec = getattr(task, "spec", None)
            configure_jax(task.compile_cache, "default" if spec is None else spec.precision.matmul)
            import_keras()
            set_number_type(in_double=spec is not None and needs_double(spec.precision))
            use_accelerator(environment)
        elif runs_program(task):
            # The program inherits it.
            environment.apply()
        # `os`, because importing pathlib would slow the start of a runner.
        os.makedirs(task.folder, exist_ok=True)  # noqa: PTH103
        run = load(task)
        # Exempts the libraries from garbage collection. Keras collects garbage for each model, which then
        # takes 0.02 s instead of 0.3 s. Only once: objects of later tasks, such as models kept for the next
        # one, must stay collectable.
        if not self._frozen:
            gc.freeze()
            self._frozen = True
        record = make_record(task, environment)
        # A standby has another name until its first task.
        set_process_name("ty-runner")
        # The first unfinished training resumes from it. The event is sent before models are built.
        newest = newest_intact(task.resumes_from())
        step = None if newest is None else newest.step
        self._writer.send(Started(time=time.time(), record=record, resumed_from=step))
        return run(task, EventReporter(self._writer, self._control, task.folder))
