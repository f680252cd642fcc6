"""Formats the sentences that state why work waits."""

import datetime as dt
from collections.abc import Sequence

from jobs.placement.reservations import UNLIMITED
from jobs.placement.state import Limit, Reservation, Running, Work


def format_slots(count: int) -> str:
    """Return a slot count with its noun, such as `1 slot`."""
    return f"{count} slot{'' if count == 1 else 's'}"


def at_limit_of_project(limit: Limit, used: int) -> str:
    """Return that a project uses all slots that it may."""
    return f"Project {limit.name} uses {used} of its {format_slots(limit.slots)}."


def at_limit_of_person(limit: Limit, used: int) -> str:
    """Return that a person uses all slots that they may."""
    return f"{limit.name} uses {used} of the {format_slots(limit.slots)} that they may use at once."


def none_fits(work: Work) -> str:
    """Return that no machine can run work. Callers that know why give that as `Work.refusal` instead."""
    return f"No worker of pool {work.pool} can run it."


def no_room(work: Work, total: int, free: int, notes: str) -> str:
    """Return that work waits for slots."""
    reason = f"It needs {work.slots} of the {format_slots(total)} of pool {work.pool}; {free} free now."
    return f"{reason} {notes}".rstrip()


def behind(work: Work, first: Work) -> str:
    """Return that other work waits for the same slots and is ahead."""
    reason = f"Job {first.job} is ahead of it and waits for {format_slots(first.slots)}"
    is_younger = (first.queued, first.job) > (work.queued, work.job)
    if first.priority == work.priority and first.person != work.person and is_younger:
        return f"{reason}: the person who submitted that one has used less of pool {work.pool} lately."
    return f"{reason}."


def reserved(row: Reservation, machine: str) -> str:
    """Return that slots or GPUs are reserved for others. It names no holder, whom not all may see."""
    if row.gpus:
        what = " and ".join(row.gpus)
    else:
        what = format_slots(row.slots) if row.slots is not None else "all slots"
    where = f"worker {machine}" if row.machine else f"pool {row.pool}"
    begins, ends = format_time(row.begins), format_time(row.ends)
    return f"Reserved {for_others(row.key)} from {begins} to {ends}: {what} of {where}."


def for_others(reservation: int) -> str:
    """Return for whom a reservation is, for readers of whom it is unknown whether they may see that.

    `jobs.queries.runs.reservations.name_holders` puts the holder's name here for those who may.
    """
    return f"for others (reservation {reservation})"


def reserved_while_it_runs(row: Reservation, machine: str, seconds: float | None, now: float) -> str:
    """Return that slots or GPUs are reserved for others while work would run, and which limit would do.

    Args:
        row: the reservation.
        machine: the name of a machine for which it is.
        seconds: how long the work may run; None without a limit.
        now: the present time.
    """
    reason = reserved(row, machine)
    if row.begins <= now:
        return reason
    if seconds is not None:
        return f"{reason} With its time limit of {seconds / 60:g} minutes, it could still run then."
    reason = f"{reason} A job without a time limit may run for {UNLIMITED / 3600:g} h"
    if (minutes := int((row.begins - now) // 60)) < 1:
        return f"{reason}."
    return f"{reason}; one with resources.max_minutes of at most {minutes} ends before."


def makes_room(leaving: Sequence[Running]) -> str:
    """Return that running work writes a checkpoint and frees its slots."""
    jobs = sorted({attempt.job for attempt in leaving})
    if len(jobs) == 1:
        return f"Job {jobs[0]} has a lower priority: it writes a checkpoint and makes room."
    numbers = ", ".join(str(job) for job in jobs)
    return f"Jobs {numbers} have a lower priority: they write checkpoints and make room."


def format_time(seconds: float) -> str:
    """Return a time in seconds as words, in UTC."""
    return f"{dt.datetime.fromtimestamp(seconds, dt.UTC):%Y-%m-%d %H:%M} UTC"
