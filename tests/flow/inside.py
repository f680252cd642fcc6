"""Runs inside an installation and answers calls on its database and files, one JSON line each."""

import json
import sys
import traceback
from importlib import import_module


def answer_calls() -> None:
    """Read `[module, function, arguments]`, print `{"answer": …}` or `{"error": traceback}`."""
    for line in sys.stdin:
        module, function, arguments = json.loads(line)
        try:
            response = {"answer": getattr(import_module(module), function)(*arguments)}
        except Exception:  # noqa: BLE001  every error is reported to the test
            response = {"error": traceback.format_exc()}
        sys.stdout.write(json.dumps(response) + "\n")
        sys.stdout.flush()
