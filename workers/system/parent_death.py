"""Ends this process when its parent dies, and keeps the parent's group signals from it."""

import os
import signal
import sys

from workers.system import kernel

PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int, signal_number: int = signal.SIGKILL) -> None:
    """Have the kernel send a signal when the parent dies, and check that it has not died already.

    The signal is also sent when the parent's spawning *thread* ends, so supervisors spawn from a thread that
    lives as long as they do. Systems other than Linux have no such signal: there, runners and model children
    end when the pipe or socket to their parent is closed.

    Call it after the user has changed, which removes the setting.

    Args:
        parent: the parent's pid; 0 if it is in another PID namespace.
        signal_number: the signal.

    Raises:
        SystemExit: `parent` is not this process's parent any more.
    """
    if sys.platform == "linux":
        kernel.prctl(PR_SET_PDEATHSIG, signal_number)
    # The parent may have died before the call above. Its children then have another parent, and get no
    # signal.
    if os.getppid() != parent:
        raise SystemExit(
            f"the process that started this one (pid {parent}) has ended; the parent is now {os.getppid()}"
        )


GROUP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
"""The signals that a service manager, Slurm or a terminal sends to all processes of a service at once."""


def ignore_group_signals() -> None:
    """Leave it to the process that supervises this one to react to them.

    It lets runs write a checkpoint first. A process between it and a run must not end before, because the run
    would end with it. Programs that this process executes inherit it: see `accept_group_signals`.
    """
    for number in GROUP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def accept_group_signals() -> None:
    """Undo `ignore_group_signals` in a process that has inherited it."""
    for number in GROUP_SIGNALS:
        signal.signal(number, signal.SIG_DFL)


def lead_group_of_session() -> None:
    """Leave the parent's process group, but not its session.

    A signal to the parent's group, such as Ctrl-C, does not reach this process. Linux shares a busy CPU among
    sessions first (`sched_autogroup_enabled`): in its own session, a process that answers its parent
    would wait for other sessions at each request, up to 3 ms, while its parent still has time left.
    """
    # The leader of a session leads its group already, and may not change it.
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)
