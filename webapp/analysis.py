"""Starts the short-lived process that analyses a search: what it imports never gets into this one."""

import json
import os
import subprocess
import sys
import threading
from typing import Any

from django.conf import settings
from django.db import close_old_connections, connection

from jobs.actions import analyses
from jobs.contracts.answers.search_results import ImportanceOut
from jobs.models import Analysis, Job
from jobs.queries import importance

PROGRAM = (sys.executable, "-m", "workers.engine.analysis")
PATIENCE_SECONDS = 100.0
PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "VIRTUAL_ENV")

_one_at_a_time = threading.BoundedSemaphore(1)


def importance_of(search: Job) -> ImportanceOut:
    """Return the newest importance, and have it computed in the background if trials came since.

    Raises:
        Conflict: the job is no search.
    """
    found = importance.shown(search)
    if found.state in ("missing", "stale", "computing") and _start(search):
        return found.model_copy(update={"state": "computing"})
    return found


def _start(search: Job) -> bool:
    """Begin to compute; False while this process or another is at it already."""
    if not _one_at_a_time.acquire(blocking=False):
        return False
    claimed = None
    try:
        claimed = analyses.claim(search, Analysis.Kind.IMPORTANCE)
        if claimed is not None:
            threading.Thread(target=_in_background, args=(claimed,), daemon=True, name="analysis").start()
    finally:
        if claimed is None:
            _one_at_a_time.release()
    return claimed is not None


def _in_background(claimed: Analysis) -> None:
    try:
        compute(claimed)
    finally:
        _one_at_a_time.release()
        connection.close()  # a thread's own, and this one ends


def compute(claimed: Analysis) -> None:
    """Ask the process and keep what it says."""
    close_old_connections()
    search = claimed.job
    trials = importance.completed(search)
    try:
        answer = ask(importance.request(search).model_dump_json())
    except (ValueError, OSError, subprocess.SubprocessError) as error:
        analyses.fail(claimed, trials=trials, error=f"It could not be computed: {error}")
        return
    if "error" in answer:
        analyses.fail(claimed, trials=trials, error=f"It could not be computed: {answer['error']}")
    else:
        analyses.finish(claimed, trials=trials, result=answer)


def ask(request: str) -> dict[str, Any]:
    """Return the answer of a fresh process, which gets none of this one's secrets.

    Raises:
        OSError: it did not start.
        SubprocessError: it was slow, or died.
        ValueError: what it said is no answer.
    """
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    ended = subprocess.run(  # noqa: S603 - a fixed argv
        PROGRAM,
        input=request,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
        cwd=settings.BASE_DIR,
        env=environment,
    )
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer
