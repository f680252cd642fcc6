"""Runs inside a yard: answers calls on its database and files, a line of JSON each, until its input ends."""

import json
import sys
import traceback
from importlib import import_module


def answer_calls() -> None:
    """Read `[module, function, arguments]`, print `{"answer": …}` or `{"error": traceback}`."""
    for line in sys.stdin:
        module, function, arguments = json.loads(line)
        try:
            said = {"answer": getattr(import_module(module), function)(*arguments)}
        except Exception:  # noqa: BLE001  whatever it was, the test must hear of it
            said = {"error": traceback.format_exc()}
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()
