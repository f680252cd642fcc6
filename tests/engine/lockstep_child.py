"""Runs in a process that a test kills: trains a task's executions in one call and prints each checkpoint."""

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ.update(KERAS_BACKEND="jax", JAX_PLATFORMS="cpu")

from workers.runner.libraries import import_keras

import_keras()

from jobs.kinds.search.payload import TrialTask  # noqa: E402  Keras comes first
from tests.engine.helpers import RecordingReport  # noqa: E402
from workers.engine.compiled.timing_results import TimingResults  # noqa: E402
from workers.engine.tasks import trial  # noqa: E402


class PrintingReport(RecordingReport):
    """Prints each checkpoint; the test that reads the output acts as the supervisor."""

    def checkpoint(self, folder: str, *, manifest: str, step: int, execution: int, **more: Any) -> None:
        del more
        body = {"folder": folder, "manifest": manifest, "step": step}
        sys.stdout.write(json.dumps({"execution": execution, **body}) + "\n")
        sys.stdout.flush()


def main(task: Path) -> None:
    """Run the task in the file."""
    TimingResults.relative_cost = lambda self, count: 0.5  # type: ignore[method-assign]
    wanted = TrialTask.model_validate_json(task.read_text())
    trial.run(wanted, PrintingReport(wanted.folder))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
