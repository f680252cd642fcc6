"""Measures requests with new sequence lengths to a model whose inputs have no fixed length.

Run `python -m benchmarks.serving_lengths`. An Embedding + LSTM model is asked for lengths that are new, for
the same ones again, for lengths between them, and for all of them again after a restart of the server. A
length that needs a program inside its request takes hundreds of milliseconds.
"""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path

from benchmarks.serving_predict import Server, ours

SEEN = range(8, 41, 4)
BETWEEN = [length for length in range(8, 41) if length not in SEEN]


def build_model(path: Path) -> None:
    code = (
        "import keras, sys\n"
        "x = keras.Input((None,), dtype='int32'); h = keras.layers.Embedding(1000, 32)(x)\n"
        "keras.Model(x, keras.layers.Dense(4)(keras.layers.LSTM(32)(h))).save(sys.argv[1])"
    )
    environment = {**os.environ, "KERAS_BACKEND": "jax"}
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, env=environment)


def ask(server: Server, length: int) -> float:
    """Return the milliseconds of one request."""
    body = json.dumps({"instances": [list(range(length))]}).encode()
    began = time.perf_counter()
    with urllib.request.urlopen(f"{server.url}/v1/models/m:predict", body) as answer:
        answer.read()
    return (time.perf_counter() - began) * 1000


def until_ready(server: Server) -> None:
    while True:
        with contextlib.suppress(urllib.error.HTTPError):
            urllib.request.urlopen(f"{server.url}/v2/health/ready").read()
            return
        time.sleep(0.1)


def until_idle(server: Server) -> float:
    """Wait until no program is compiled any more; return the seconds."""
    began, used = time.perf_counter(), 0.0
    while (now := server.cpu_seconds()) - used > 0.1 and time.perf_counter() - began < 300:
        used = now
        time.sleep(2)
    return time.perf_counter() - began


def report(label: str, server: Server, lengths: Iterable[int]) -> None:
    taken = [ask(server, length) for length in lengths]
    print(f"{label:40s} median {statistics.median(taken):7.1f}  largest {max(taken):7.1f} ms", flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build_model(folder / "model.keras")
        with ours(folder, folder / "model.keras") as server:
            until_ready(server)
            report("new lengths", server, SEEN)
            report("the same again", server, SEEN)
            waited = until_idle(server)
            report(f"lengths between, {waited:.0f} s later", server, BETWEEN)
        with ours(folder, folder / "model.keras") as server:
            began = time.perf_counter()
            until_ready(server)
            print(f"ready {time.perf_counter() - began:.1f} s after the restart")
            report("all lengths after a restart", server, (*SEEN, *BETWEEN))


if __name__ == "__main__":
    main()
