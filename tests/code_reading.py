"""Reads code in the test's own process, which is safe for that of tests alone.

A new process takes a fifth of a second of CPU. Tests of the process start it: see `real_process`.
"""

import threading
from typing import IO

import pytest

from webapp import code_reader
from workers.code_reader.__main__ import answer

PROGRAM = code_reader.PROGRAM
run_process = code_reader._run


def install() -> None:
    """Let the web process read code without another process, unless a test has set a program of its own."""
    code_reader._run = _run


@pytest.fixture
def real_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read code as an installation does."""
    monkeypatch.setattr(code_reader, "_run", run_process)


def _run(request: str, output: IO[bytes]) -> None:
    # The reader interrupts itself by a signal, which only the main thread can receive.
    if code_reader.PROGRAM is not PROGRAM or threading.current_thread() is not threading.main_thread():
        run_process(request, output)
        return
    try:
        findings = answer(request)
    except Exception as error:
        raise code_reader.ReaderEnded from error
    output.write(findings.model_dump_json().encode())
