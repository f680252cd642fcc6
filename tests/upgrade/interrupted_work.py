"""Starts work and interrupts it at a known point before the home directory is saved."""

import signal
import time
from functools import partial

import psutil

from tests.flow.rows import read
from tests.flow.specs import Spec, search, spec, whole_line
from tests.ops.conftest import wait_for
from tests.upgrade.old_yard import RATE, OldYard

EPOCHS = 100
BEGUN, NOT_DONE = 15, 80
"""Between these epochs a training is interrupted."""
TRIALS = 8
STEPS = ("train", "ensemble", "quantize", "register")
LOOK = 0.01
"""Seconds between two polls: the awaited state lasts less than a second."""
RUNNING = """SELECT t.number, e.number, max(c.epoch)
    FROM jobs_trial t JOIN jobs_execution e ON e.trial_id = t.id
    JOIN jobs_checkpoint c ON c.trial_id = t.id AND c.execution = e.number
    WHERE t.job_id = ? AND t.state = 'running' AND e.state = 'running' AND c.removed IS NULL
    GROUP BY t.number, e.number"""


def submit_search(yard: OldYard) -> int:
    """Submit a search with steps after it, and narrow its space once a trial has ended."""
    asked = search("tpe", max_trials=TRIALS + 2, parallel_trials=2, space=[RATE])
    after = {
        "retrain": {"top": 2, "patience": 5, "epochs_cap": 20},
        "ensemble": {"method": "weighted", "weights": "nelder-mead"},
        "register": {"model": "half", "what": ["ensemble"]},
    }
    job = yard.submit(spec(search=asked, fit={"epochs": EPOCHS, "batch_size": 2}, after=after), name="half")
    wait_for(lambda: yard.trials_in(job, "completed"), "the first trial to end")
    search_now = {"max_trials": TRIALS, "space": [{**RATE, "min": 5e-3}]}
    yard.ada.post(f"/jobs/{job}/revise", {"search": search_now, "comment": "Slow ones learn nothing."})
    return job


def submit_rungs(yard: OldYard) -> int:
    """Submit a search whose trials wait at rungs."""
    options = {"factor": 3, "min_epochs": 20}
    parts: Spec = {"max_trials": 6, "executions_per_trial": 1, "parallel_trials": 1}
    asked = search("asha", space=[RATE], options=options, **parts)
    fit = {"epochs": 180, "batch_size": 2}
    return yard.submit(spec(search=asked, fit=fit), name="half of the rungs")


def is_half_done(yard: OldYard, job: int) -> bool:
    """Return whether some trials are done, two run, one in its second execution, and others remain."""
    running = read(yard.home, RUNNING, job)
    done = yard.trials_in(job, "completed")
    return (
        2 <= done <= TRIALS - 4
        and len(running) == 2
        and any(execution == 2 for _, execution, _ in running)
        and all(BEGUN <= epoch <= NOT_DONE for *_, epoch in running)
    )


def submit_waiting(yard: OldYard) -> dict[str, int]:
    """Submit a search for each step that may follow one, whose job of that step waits for a worker.

    A next step is made in its search's pool: that becomes one without workers while the step before runs.
    """
    jobs = {step: _submit_whole_line(yard, f"waits for {step}") for step in STEPS}
    moved: set[str] = set()
    while len(moved) < len(jobs):
        for step in jobs.keys() - moved:
            if _runs_before(yard, jobs[step], step):
                yard.change("PATCH", f"/jobs/{jobs[step]}", {"pool": "nowhere"})
                moved.add(step)
        time.sleep(LOOK)
    for step, job in jobs.items():
        wait_for(partial(_is_queued, yard, job, step), f"a queued {step}")
    return jobs


def _submit_whole_line(yard: OldYard, name: str) -> int:
    asked = search(max_trials=2, executions_per_trial=1, space=[RATE])
    after = whole_line("later")
    return yard.submit(spec(search=asked, fit={"epochs": 8, "batch_size": 16}, after=after), name=name)


def _runs_before(yard: OldYard, job: int, step: str) -> bool:
    """Return whether all jobs from the previous step run or are completed."""
    if step == STEPS[0]:
        return yard.trials_in(job, "running") + yard.trials_in(job, "completed") == 2
    states = _states(yard, job, STEPS[STEPS.index(step) - 1])
    return bool(states) and states <= {"running", "completed"}


def _is_queued(yard: OldYard, job: int, kind: str) -> bool:
    return _states(yard, job, kind) == {"queued"}


def _states(yard: OldYard, job: int, kind: str) -> set[str]:
    query = "SELECT state FROM jobs_job WHERE parent_id = ? AND kind = ?"
    return {state for (state,) in read(yard.home, query, job, kind)}


def interrupt(yard: OldYard) -> tuple[int, int]:
    """Kill worker and scheduler in the middle of two searches, which are returned; the web still answers."""
    job, rungs = submit_search(yard), submit_rungs(yard)
    while not (is_half_done(yard, job) and yard.trials_in(rungs, "paused")):
        assert yard.trials_in(job, "completed") < TRIALS, "it was never half-finished: run this again"
        time.sleep(LOOK)
    _kill_writers(yard)
    assert is_half_done(yard, job), "more was written before the end: run this again"
    return job, rungs


def _kill_writers(yard: OldYard) -> None:
    assert yard.process is not None
    parts = yard.parts()
    yard.process.send_signal(signal.SIGSTOP)  # it would start them again
    for name in ("worker-1", "scheduler"):
        parts[name].kill()
        wait_for(partial(_is_dead, parts[name]), f"the end of {name}")


def _is_dead(process: psutil.Process) -> bool:
    return bool(process.status() == psutil.STATUS_ZOMBIE)
