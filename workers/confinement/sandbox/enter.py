"""Makes a process the one outside a sandbox, and confines the command's process; see `stages`.

The process that the worker started stays outside the sandbox and waits for the command; in the end it has
its status, and the sandbox's other processes are ended, as far as the level guarantees that. At the
level `bubblewrap`, that process becomes bubblewrap, which executes a further stage.

A process that was forked enters a sandbox by `enter`, and runs a function there; see `forked`.
"""

import os
import resource
import signal
import sys
import warnings  # noqa: F401  `os.execvpe` needs it, and the user of a run may not be able to read it
from collections.abc import Callable, Sequence
from typing import NoReturn

from workers.confinement.sandbox import landlock, monitor, seccomp
from workers.confinement.sandbox.plan import Plan
from workers.system import kernel
from workers.system.parent_death import accept_group_signals, die_with_parent, ignore_group_signals

CANNOT_START, NOT_FOUND = 125, 127
"""Exit statuses: the sandbox, or the command in it, could not be started. The reason is on standard error."""
STREAMS = 3
PARENT_DIED = signal.SIGUSR1
"""The signal for a guardian when the process outside has ended. No service manager sends it to a group."""

type Run = Callable[[Plan], NoReturn]
"""Called in a confined process: executes the command, or does something else."""


def fail(error: Exception) -> NoReturn:
    """End this process with the reason on standard error."""
    reason = f"{type(error).__name__}: {error}"
    if not isinstance(error, OSError | NotImplementedError):
        # Only for errors of this program: it takes a while to import.
        import traceback

        reason = traceback.format_exc()
    os.write(2, f"the sandbox could not be started: {reason}\n".encode())
    os._exit(CANNOT_START)


def enter(
    plan: Plan, run: Run, before_bubblewrap: Callable[[], tuple[int, str]], *, keep: int | None = None
) -> NoReturn:
    """Make this process the one outside a sandbox, in which `run` is called.

    Args:
        plan: the plan.
        run: called in the confined process.
        before_bubblewrap: called before this process becomes bubblewrap; returns arguments for
            `stages.main` in the process that bubblewrap starts.
        keep: a descriptor that only bubblewrap needs.

    Raises:
        OSError: the kernel refused.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Only the command reacts to them. `become` accepts them again.
    ignore_group_signals()
    if plan.cgroup is not None:
        with open(f"{plan.cgroup}/cgroup.procs", "w") as file:  # noqa: PTH123  pathlib is not imported
            file.write("0")
    if plan.level == "bubblewrap":
        if not plan.privileged:
            become_user(plan)
        # Bubblewrap asks for it later: the worker could have died before.
        die_with_parent(plan.parent)
        os.execv(plan.program[0], [*plan.program, *map(str, before_bubblewrap())])  # noqa: S606
    if keep is not None:
        os.close(keep)
    _run_in_group(plan, run)


def _run_in_group(plan: Plan, run: Run) -> NoReturn:
    """Run the command below a guardian, which ends the remaining processes when the command ends.

    This process can be killed at any time: the guardian then gets a signal, and ends all others.
    """
    if sys.platform == "linux":
        kernel.become_subreaper()
    die_with_parent(plan.parent)
    outside = os.getpid()
    guardian = os.fork()
    if guardian == 0:
        guarded(_guard, plan, run, outside)
    monitor.close_all_but()
    status = monitor.wait_for(guardian)
    # A guardian that was killed has left its processes to this one.
    monitor.end_descendants(plan.uid)
    monitor.end_like(status)


def _guard(plan: Plan, run: Run, parent: int) -> NoReturn:
    # A signal to the group of the outer process must not reach this one.
    os.setsid()
    # Blocked until the group is known: otherwise a process could be left.
    signal.pthread_sigmask(signal.SIG_BLOCK, [PARENT_DIED])
    if sys.platform == "linux":
        kernel.become_subreaper()
    die_with_parent(parent, PARENT_DIED)
    guardian = os.getpid()
    command = os.fork()
    if command == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [PARENT_DIED])
        os.setpgid(0, 0)
        guarded(become, plan, run, guardian)
    group = monitor.Group(command, plan.uid)
    monitor.close_all_but()
    signal.signal(PARENT_DIED, lambda *_: group.end())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [PARENT_DIED])
    monitor.end_like(group.wait())


def guarded[**P](step: Callable[P, NoReturn], *arguments: P.args, **named: P.kwargs) -> NoReturn:
    """Call a step that ends the process. If it fails, exit: a fork must not continue its parent's code."""
    try:
        step(*arguments, **named)
    except Exception as error:  # noqa: BLE001  whatever it is, the command must not run
        fail(error)
    finally:
        os._exit(CANNOT_START)


def become(plan: Plan, run: Run, parent: int | None = None) -> NoReturn:
    """Confine this process, and call `run`.

    Args:
        plan: the plan.
        run: executes the command, or does something else, within these restrictions.
        parent: the pid with whose process this one dies; 0 if it is in another PID namespace.
    """
    _close_files(plan.keep)
    _set_limits(plan)
    # The user of the run may not be able to open the folders that the rules name.
    rules = None
    if plan.landlock_version:
        rules = landlock.create(plan.landlock, ports=plan.ports, landlock=plan.landlock_version)
    if rules is None and plan.domain:
        rules = landlock.create_domain(plan.domain)
    # Before bubblewrap, there was a reason to stay root.
    if plan.uid is not None and os.geteuid() != plan.uid:
        become_user(plan)
    if sys.platform == "linux":
        kernel.drop_capabilities()
        # The watch reads it. A new program would allow it in any case.
        kernel.allow_own_proc()
    if parent is not None:
        die_with_parent(parent)
    accept_group_signals()
    os.umask(0o077 if plan.uid is not None else 0o022)
    os.chdir(plan.folder)
    if rules is not None:
        landlock.restrict(rules)
    if plan.seccomp is not None:
        seccomp.apply(seccomp.Options(**plan.seccomp))
    run(plan)


def execute(plan: Plan) -> NoReturn:
    """Execute the command in a plan."""
    try:
        os.execvpe(plan.command[0], [*plan.command], plan.environment)  # noqa: S606
    except OSError as error:
        os.write(2, f"{plan.command[0]}: {error.strerror}\n".encode())
        os._exit(NOT_FOUND)


def become_user(plan: Plan) -> None:
    """Take on the run's user alone, without other groups."""
    if plan.uid is None or plan.gid is None:
        return
    try:
        os.setgroups([])
        os.setresgid(plan.gid, plan.gid, plan.gid)
        os.setresuid(plan.uid, plan.uid, plan.uid)
    except PermissionError as error:
        raise PermissionError(error.errno, "the worker is root, but may not become another user") from error
    if sys.platform == "linux":
        kernel.allow_own_proc()


def _close_files(keep: Sequence[int]) -> None:
    last = STREAMS - 1
    for descriptor in sorted(keep):
        os.closerange(last + 1, descriptor)
        os.set_inheritable(descriptor, True)
        last = descriptor
    os.closerange(last + 1, max(last + 1, os.sysconf("SC_OPEN_MAX")))


def _set_limits(plan: Plan) -> None:
    limits = list(plan.limits)
    if plan.threads is not None:
        limits.append(("RLIMIT_NPROC", plan.threads, plan.threads))
    for name, soft, hard in limits:
        number = getattr(resource, name, None)
        if number is None:  # another system
            continue
        _, present = resource.getrlimit(number)
        if present != resource.RLIM_INFINITY:
            soft, hard = min(soft, present), min(hard, present)
        resource.setrlimit(number, (soft, hard))
