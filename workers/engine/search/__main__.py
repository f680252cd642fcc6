"""A disposable process that suggests: a `SuggestRequest` a line in, an answer a line out, until end of file.

    {"answer": {"suggestions": […], …}}     or     {"error": "a sentence"}

It holds nothing between two lines but its imports, so it may be killed at any moment.
"""

import os

# Before numpy is imported: with a thread a core, a suggestion on a busy machine took 100 times longer.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
os.environ["KERAS_BACKEND"] = "jax"  # keras_tuner imports keras; no device is ever touched
os.environ["JAX_PLATFORMS"] = "cpu"

import json  # noqa: E402
import sys  # noqa: E402
from typing import Any, TextIO  # noqa: E402

from jobs.contracts.suggest import SuggestRequest  # noqa: E402
from workers.engine.search.suggest import suggest  # noqa: E402


def answer(line: str) -> dict[str, Any]:
    """Answer one request; a request or a model that fails is an answer too."""
    try:
        found = suggest(SuggestRequest.model_validate_json(line))
    except (ValueError, ArithmeticError, LookupError, RuntimeError) as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {"answer": found.model_dump(mode="json")}


def main(requests: TextIO, answers: TextIO) -> None:
    """Serve until end of file."""
    for line in requests:
        if line.strip():
            answers.write(json.dumps(answer(line), allow_nan=False) + "\n")
            answers.flush()


if __name__ == "__main__":
    # Libraries print; the answers have the real standard output to themselves.
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    main(sys.stdin, out)
