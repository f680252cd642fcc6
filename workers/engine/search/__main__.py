"""Answers suggestion requests in its own process: one `SuggestRequest` per line in, one answer per line out.

    {"answer": {"suggestions": […], …}}     or     {"error": "a message"}

It keeps no state between lines, so it can be killed at any time.
"""

import os

# Set before NumPy is imported: with one thread per core, suggestions on a busy machine took 100 times longer.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
# keras_tuner imports keras, which fails without a backend; no device is used
os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_PLATFORMS"] = "cpu"

import json  # noqa: E402
import sys  # noqa: E402
from typing import Any, TextIO  # noqa: E402

from jobs.messages.suggest import SuggestRequest  # noqa: E402
from workers.engine.search.suggest import ALGORITHM_ERRORS, suggest  # noqa: E402


def answer(line: str) -> dict[str, Any]:
    """Return the answer to one request; an invalid request or a failed model gives an error."""
    try:
        suggestions = suggest(SuggestRequest.model_validate_json(line))
    except ALGORITHM_ERRORS as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {"answer": suggestions.model_dump(mode="json")}


def main(requests: TextIO, answers: TextIO) -> None:
    """Answer requests until end of file."""
    for line in requests:
        if line.strip():
            answers.write(json.dumps(answer(line), allow_nan=False) + "\n")
            answers.flush()


if __name__ == "__main__":
    # A library that prints to standard output would write into the answers, so it gets standard error.
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    main(sys.stdin, out)
