"""Computes hyperparameter importances in its own process.

Reads an `ImportanceRequest` as JSON from standard input and writes one JSON object to standard output:

    {"used": …, "importances": […]}     or     {"error": "a message"}

Importing optuna and SciPy takes a second and 100 MB, which the calling process avoids.
"""

import os

# Set before NumPy is imported: on a busy machine, threads that wait for each other are slow.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import json  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402

from jobs.messages.analysis import ImportanceRequest  # noqa: E402
from workers.engine.analysis.importance import importance  # noqa: E402

TIMEOUT_SECONDS = 120


def answer(text: str) -> str:
    """Return the response to a request as JSON; an invalid request gets an error message."""
    try:
        return importance(ImportanceRequest.model_validate_json(text)).model_dump_json()
    except ValueError as error:
        return json.dumps({"error": str(error)})


if __name__ == "__main__":
    # The calling process may have died and would not end this one.
    signal.alarm(TIMEOUT_SECONDS)
    os.nice(10)
    sys.stdout.write(answer(sys.stdin.read()))
