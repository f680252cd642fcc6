"""Trains each task's executions in one call, in a process that is killed; prints each checkpoint.

The processes are forked from this one, as runners are: importing Keras takes longer than these trainings.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ.update(KERAS_BACKEND="jax", JAX_PLATFORMS="cpu")

from workers.runner.libraries import configure_jax, import_keras

import_keras()

from jobs.messages.training import TrialTask  # noqa: E402  Keras comes first
from tests.engine.helpers import RecordingReport  # noqa: E402
from workers.engine.compiled.timing_results import TimingResults  # noqa: E402
from workers.engine.killpoint import VARIABLE  # noqa: E402
from workers.engine.tasks import trial  # noqa: E402


class PrintingReport(RecordingReport):
    """Prints each checkpoint; the test that reads the output acts as the supervisor."""

    def __init__(self, folder: str, point: str) -> None:
        super().__init__(folder)
        self.point = point

    def checkpoint(
        self, folder: str, *, step: int, manifest: str, execution: int | None = None, **more: Any
    ) -> None:
        del more
        body = {"folder": folder, "manifest": manifest, "step": step}
        sys.stdout.write(json.dumps({"point": self.point, "execution": execution, **body}) + "\n")
        sys.stdout.flush()


def train(task: str, point: str) -> None:
    """Run a task up to a point."""
    os.environ[VARIABLE] = point
    configure_jax(str(Path(os.environ["TRAINYARD_TEST_HOME"], "compiled")), "default")
    TimingResults.relative_cost = lambda self, count: 0.5  # type: ignore[method-assign]
    trial_task = TrialTask.model_validate_json(task)
    trial.run(trial_task, PrintingReport(trial_task.folder, point))


def main() -> None:
    """Read tasks by their points; fork a process for each, and print how it ended."""
    for point, task in json.load(sys.stdin).items():
        if (pid := os.fork()) == 0:
            train(task, point)
            sys.exit("it was not killed")
        ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        sys.stdout.write(json.dumps({"point": point, "ended": ended}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
