"""Has a fork carry out a sandbox's plan. `sandbox_forks` requests it."""

import os
from collections.abc import Sequence
from typing import NoReturn

from workers.confinement.forking import plan_file
from workers.confinement.forking.interpreter import run_and_exit
from workers.confinement.sandbox.enter import guarded
from workers.confinement.sandbox.forked import enter_forked
from workers.confinement.sandbox.plan import Plan
from workers.system.kernel import set_process_name


def take_streams(descriptors: Sequence[int]) -> int:
    """Make descriptors the standard streams of this process, and return the one that follows them."""
    *streams, last = descriptors
    for target, descriptor in enumerate(streams):
        os.dup2(descriptor, target)
        os.close(descriptor)
    return last


def enter_sandbox(descriptors: Sequence[int], parent: int) -> NoReturn:
    """Make this fork the process outside a sandbox, in which the plan's command is run.

    Args:
        descriptors: from a `ForkIntoSandbox`.
        parent: the pid with which the sandbox ends.
    """
    # That of the processes outside. The module in the sandbox sets its own.
    set_process_name("ty-sandbox")
    guarded(_enter_sandbox, descriptors, parent)


def _enter_sandbox(descriptors: Sequence[int], parent: int) -> NoReturn:
    file, *others = descriptors
    plan = _claimed_plan(file)._replace(parent=parent)
    connection = take_streams(others)
    # The command names the number that the descriptor has in the process that made the plan.
    (named,) = plan.keep
    if connection != named:
        os.dup2(connection, named)
        os.close(connection)
    enter_forked(plan, _run_in_sandbox)


def _claimed_plan(file: int) -> Plan:
    if not plan_file.claim(file):
        raise TimeoutError("another process was started, since this one was forked too late")
    plan = Plan.read(file)
    os.close(file)
    return plan


def _run_in_sandbox(plan: Plan) -> NoReturn:
    run_and_exit(plan.command, plan.environment, plan.folder)
