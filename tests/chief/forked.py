"""Imports KerasTuner once and forks a script for each id read from its input; prints each pid."""

import os
import runpy
import sys
from pathlib import Path

import keras_tuner  # noqa: F401  takes seconds, so it is done once

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        os.environ["KERASTUNER_TUNER_ID"] = line.strip()
        try:
            runpy.run_path(str(Path(__file__).with_name("script.py")), run_name="__main__")
        finally:
            sys.stderr.flush()
        os._exit(0)
    print(child, flush=True)  # noqa: T201
