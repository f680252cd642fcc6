"""Describes how a run with user code ended whose runner reported no end."""

import signal

from jobs.messages.sandbox import Breach, Ended
from jobs.states import Outcome
from workers.confinement.sandbox.enter import CANNOT_START, NOT_FOUND
from workers.supervise.attempt_end import AttemptEnd
from workers.supervise.limits.sandbox_limits import variable_of
from workers.system.exit_status import signal_name

CODES: dict[Breach, str] = {
    Breach.MEMORY: "out_of_memory",
    Breach.PROCESSES: "process_limit",
    Breach.DISK: "disk_limit",
    Breach.OUTPUT: "output_limit",
}
_REMEDIES: dict[Breach, str] = {
    Breach.MEMORY: "use a smaller batch or model, or raise resources.memory_gib",
    Breach.PROCESSES: f"start fewer, or have the operator raise {variable_of('processes')} on the workers",
    Breach.DISK: f"write less, or have the operator raise {variable_of('disk_gib')} on the workers",
    Breach.OUTPUT: f"print less, or have the operator raise {variable_of('output_mib')} on the workers",
}


def end_of_breach(ended: Ended) -> AttemptEnd:
    """Return the end for a run that was ended at a sandbox limit. It would end there again."""
    message = f"{ended.message[0].upper()}{ended.message[1:]}. To continue, {_REMEDIES[ended.breach]}."
    return AttemptEnd(Outcome.FAILED, CODES[ended.breach], message)


def end_of_process(status: int, *, began: bool, printed: str) -> AttemptEnd:
    """Return the end for a run whose process has ended by itself.

    Args:
        status: its exit status, negative for a signal.
        began: whether its task had begun.
        printed: the last part of its standard error.
    """
    if not began:
        return _end_of_start(status, printed)
    if status == -signal.SIGKILL:
        return AttemptEnd.runner_died(status)
    if status == -signal.SIGXCPU:
        message = (
            "The code used more CPU time than one process may use. Train for fewer epochs, or have the "
            f"operator raise {variable_of('cpu_seconds')} on the workers."
        )
        return AttemptEnd(Outcome.FAILED, "cpu_limit", message)
    if status < 0:
        message = (
            f"The process of the code ended by {signal_name(-status)}: a library that it uses crashed, or it "
            "sent the signal to itself. See its log."
        )
        return AttemptEnd(Outcome.FAILED, "code_crashed", message)
    message = (
        f"The code ended its process with status {status}, such as by os._exit({status}), before its task "
        "was done. Return from the function instead."
    )
    return AttemptEnd(Outcome.FAILED, "code_exited", message)


def _end_of_start(status: int, printed: str) -> AttemptEnd:
    lines = printed.strip().splitlines() or [f"it ended with status {status}"]
    if status in (CANNOT_START, NOT_FOUND):
        return AttemptEnd(Outcome.LOST, "sandbox_failed", f"The worker could not start the run: {lines[-1]}")
    ended = AttemptEnd.runner_died(status)
    return AttemptEnd(ended.outcome, ended.code, f"{ended.message} Its last line: {lines[-1][:500]}")
