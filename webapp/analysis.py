"""Analyses a search in a short-lived process, so that the web process does not import its libraries."""

import json
import subprocess
import sys
import threading
from typing import Any

from django.conf import settings
from django.db import close_old_connections, connection

from jobs.actions.search import analyses
from jobs.answers.search.search_results import ImportanceOut
from jobs.models import Analysis, Job
from jobs.queries.search import importance
from webapp.child_processes import inherited_environment

PROGRAM = (sys.executable, "-m", "workers.engine.analysis")
# Shorter than the lease of `analyses.claim_analysis`, so that no second process computes the same analysis.
TIMEOUT_SECONDS = 100.0

# The lease limits each search to one computation; this limits the web process to one for all searches.
_slot = threading.BoundedSemaphore(1)


def importance_of(search: Job) -> ImportanceOut:
    """Return the newest importance, and recompute it in the background if trials completed since.

    Raises:
        Conflict: the job is no search.
    """
    importance_row = importance.importance_out(search)
    if importance_row.state in ("missing", "stale", "computing") and _start(search):
        return importance_row.model_copy(update={"state": "computing"})
    return importance_row


def _start(search: Job) -> bool:
    """Start the computation; return False if this process or another computes already."""
    if not _slot.acquire(blocking=False):
        return False
    claimed = None
    try:
        claimed = analyses.claim_analysis(search, Analysis.Kind.IMPORTANCE)
        if claimed is not None:
            thread = threading.Thread(
                target=_compute_in_thread, args=(claimed,), daemon=True, name="analysis"
            )
            thread.start()
    finally:
        # Otherwise the thread releases the slot.
        if claimed is None:
            _slot.release()
    return claimed is not None


def _compute_in_thread(claimed: Analysis) -> None:
    try:
        compute(claimed)
    finally:
        _slot.release()
        # Django closes connections at the end of a request, and this thread has none.
        connection.close()


def compute(claimed: Analysis) -> None:
    """Run the analysis in its process and save the result."""
    close_old_connections()
    search = claimed.job
    # Counted before the request is read: trials that complete meanwhile make the result stale, not current.
    trials = importance.count_scored_trials(search)
    try:
        answer = run_process(importance.analysis_request(search).model_dump_json())
    except (ValueError, OSError, subprocess.SubprocessError) as error:
        analyses.fail_analysis(claimed, trials=trials, error=f"It could not be computed: {error}")
        return
    if "error" in answer:
        analyses.fail_analysis(claimed, trials=trials, error=f"It could not be computed: {answer['error']}")
    else:
        analyses.finish_analysis(claimed, trials=trials, result=answer)


def run_process(request: str) -> dict[str, Any]:
    """Run the request in a new process without this process's secrets, and return its answer.

    Raises:
        OSError: the process did not start.
        SubprocessError: it timed out or failed.
        ValueError: its output is not JSON.
    """
    ended = subprocess.run(  # noqa: S603 - the command is fixed
        PROGRAM,
        input=request,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=True,
        cwd=settings.BASE_DIR,
        env=inherited_environment(),
    )
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer
