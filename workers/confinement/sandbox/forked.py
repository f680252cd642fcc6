"""A forked process that enters a sandbox, so that its parent's imports are done in it.

At most levels it makes its borders itself, as a new process does. Bubblewrap, a separate program, starts a
process that waits (`hold`); then a second fork joins the namespaces of that one (setns(2)) and confines
itself like any command. So a run has the same borders, whether it was forked or not. docs/sandbox.md shows
the processes at each level.
"""

import os
import select
import signal
import socket
from typing import NoReturn

from workers.confinement.sandbox import monitor
from workers.confinement.sandbox.enter import (
    CANNOT_START,
    Run,
    become,
    enter,
    execute,
    guarded,
)
from workers.confinement.sandbox.plan import Plan
from workers.system import kernel
from workers.system.parent_death import die_with_parent

# Seconds. The waiting process ends at once, unless the run has stopped it.
END_TIMEOUT = 5.0
_JOINED, _REFUSED, _CLOSED = b"j", b"r", b"c"


def enter_forked(plan: Plan, run: Run) -> NoReturn:
    """Make this forked process the one outside a sandbox, in which `run` is called.

    Args:
        plan: the plan; its parent is that of this process.
        run: called in the confined process. If the kernel does not let a process join the namespaces of
            bubblewrap, the plan's command is executed instead.

    Raises:
        OSError: the kernel refused.
    """
    enter(plan, run, lambda: (_fork_to_join(plan, run), "hold"))


def _fork_to_join(plan: Plan, run: Run) -> int:
    """Fork the process that joins bubblewrap's namespaces. Return the descriptor for `hold`."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    outside = os.getpid()
    with ours:
        if os.fork() == 0:
            theirs.close()
            guarded(_join, plan, run, ours, outside)
    for descriptor in (*plan.keep, theirs.fileno()):
        os.set_inheritable(descriptor, True)
    return theirs.detach()


def _join(plan: Plan, run: Run, holder: socket.socket, outside: int) -> NoReturn:
    """Join the namespaces of `hold`, fork the run's process in them, and report how it ended."""
    die_with_parent(outside)
    _, handles, _, _ = socket.recv_fds(holder, 1, 1)
    # Otherwise bubblewrap has failed, and printed the reason.
    if handles:
        flags = kernel.NAMESPACES
        if plan.privileged:
            flags &= ~kernel.NEW_USER
        if plan.network:
            flags &= ~kernel.NEW_NETWORK
        try:
            os.setns(handles[0], flags)
        # It needs Linux 5.8, and a security module may forbid it.
        except OSError:
            holder.sendall(_REFUSED + plan.as_json().encode())
        else:
            # Joining may have removed the setting.
            die_with_parent(outside)
            _run_and_report(plan, run, holder)
    os._exit(0)


def _run_and_report(plan: Plan, run: Run, holder: socket.socket) -> None:
    holder.sendall(_JOINED)
    if holder.recv(1) != _CLOSED:
        return
    command = os.fork()
    if command == 0:
        os.setsid()
        # Its parent is in another PID namespace.
        guarded(become, plan, run, 0)
    # It sees the files of the run as its own root.
    kernel.drop_capabilities()
    monitor.close_all_but(holder.fileno())
    holder.sendall(str(monitor.wait_for(command)).encode())
    holder.shutdown(socket.SHUT_WR)
    if not select.select([holder], [], [], END_TIMEOUT)[0]:
        # A run with the same user has stopped the waiting process.
        os.kill(os.getppid(), signal.SIGKILL)


def hold(descriptor: int) -> NoReturn:
    """Keep bubblewrap's namespaces until the process that has joined them ends, and end like it."""
    os.setsid()
    with socket.socket(fileno=descriptor) as joining:
        handle = os.pidfd_open(os.getpid())
        socket.send_fds(joining, [b"."], [handle])
        os.close(handle)
        answer = joining.recv(1)
        if answer == _REFUSED:
            become(Plan.from_json(_rest_of(joining)), execute)
        if answer != _JOINED:
            os._exit(CANNOT_START)
        _harden_against_run(descriptor)
        joining.sendall(_CLOSED)
        status = _rest_of(joining)
        # Without a status, the other process was killed.
        monitor.end_like(int(status or signal.SIGKILL))


def _harden_against_run(descriptor: int) -> None:
    """Prevent the run, which may have the same user, from signalling or tracing this process."""
    kernel.drop_capabilities()
    # The run could write into the memory of this process, which the watch does not count. Not earlier: only a
    # process whose files in /proc are open can be joined.
    kernel.forbid_own_proc()
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    # Otherwise the streams of the run would stay open after its end.
    monitor.close_all_but(descriptor)


def _rest_of(connection: socket.socket) -> bytes:
    received = b""
    while chunk := connection.recv(2**16):
        received += chunk
    return received
