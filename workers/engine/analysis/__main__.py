"""A short-lived process: one `ImportanceRequest` as JSON in, one answer out, and it is gone.

    {"used": …, "importances": […]}     or     {"error": "a sentence"}

scikit-learn takes a second and 100 MB to import; whoever starts this pays neither.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import json  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402

from jobs.contracts.analysis import ImportanceRequest  # noqa: E402
from workers.engine.analysis.importance import importance  # noqa: E402

LONGEST_SECONDS = 120


def answer(text: str) -> str:
    """Answer a request; one that cannot be answered gets a sentence."""
    try:
        return importance(ImportanceRequest.model_validate_json(text)).model_dump_json()
    except ValueError as error:
        return json.dumps({"error": str(error)})


if __name__ == "__main__":
    signal.alarm(LONGEST_SECONDS)  # whoever asked may be dead: nobody would end it
    os.nice(10)
    sys.stdout.write(answer(sys.stdin.read()))
