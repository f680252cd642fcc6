"""Computes which slots reservations keep free on each machine, and when.

A reservation of a worker takes slots of that worker. One of a pool takes slots of its workers in the order of
their names. Work without a time limit is taken to run for `UNLIMITED`.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from jobs.placement.state import Person, Reservation, Running

UNLIMITED = 24 * 3600.0
"""Seconds that work without a time limit is expected to run at most."""


@dataclass(frozen=True, slots=True)
class Size:
    """A machine's name and slots."""

    key: int
    name: str
    slots: int


@dataclass(frozen=True, slots=True)
class Hold:
    """Slots of one machine that a reservation keeps."""

    reservation: Reservation
    slots: int


type Holds = dict[int, list[Hold]]
"""The holds on each machine, by its key."""


def spread(active: Iterable[Reservation], machines: Sequence[Size]) -> tuple[Holds, list[Reservation]]:
    """Return the slots that reservations of one pool take, and the reservations for which some are missing.

    Args:
        active: reservations at one moment.
        machines: the pool's machines.
    """
    left = {machine.key: machine.slots for machine in machines}
    ordered = sorted(machines, key=lambda machine: (machine.name, machine.key))
    holds: Holds = defaultdict(list)
    short = []
    # Those of one worker first: they cannot be elsewhere.
    for reservation in sorted(active, key=lambda row: (not row.machine, row.key)):
        own = [machine for machine in ordered if reservation.machine in ("", machine.name)]
        wanted = reservation.slots
        if wanted is None:
            wanted = sum(machine.slots for machine in own)
        for machine in own:
            taken = min(left[machine.key], wanted)
            if taken:
                holds[machine.key].append(Hold(reservation, taken))
                left[machine.key] -= taken
                wanted -= taken
        if wanted:
            short.append(reservation)
    return holds, short


def first_conflict(
    new: Reservation, others: Sequence[Reservation], machines: Sequence[Size]
) -> Reservation | None:
    """Return an existing reservation that leaves too few slots for a new one, or None.

    Args:
        new: the new one.
        others: the other reservations of its pool.
        machines: the pool's machines.
    """
    overlapping = [row for row in others if row.begins < new.ends and new.begins < row.ends]
    for moment in _moments(overlapping, new):
        active = [row for row in overlapping if row.begins <= moment < row.ends]
        _, short = spread([*active, new], machines)
        if active and short:
            return next((row for row in active if row in short), active[0])
    return None


def first_gpu_conflict(new: Reservation, others: Iterable[Reservation]) -> tuple[Reservation, str] | None:
    """Return an existing reservation that has a GPU of a new one at the same time, and the GPU; or None."""
    for row in sorted(others, key=lambda row: (row.begins, row.key)):
        shared = [gpu for gpu in new.gpus if gpu in row.gpus]
        if shared and row.machine == new.machine and row.begins < new.ends and new.begins < row.ends:
            return row, shared[0]
    return None


def reserved_for_others(
    rows: Iterable[Reservation], person: Person, project: int | None, seconds: float | None, now: float
) -> list[Reservation]:
    """Return the reservations for others that hold at some time while work may run, the first to begin first.

    Args:
        rows: reservations of the work's pool.
        person: who submitted the work.
        project: the work's project.
        seconds: how long the work may run from now on; None without a limit.
        now: the present time.
    """
    end = now + (UNLIMITED if seconds is None else seconds)
    # A limit of no time at all still meets what holds now.
    met = [row for row in rows if row.ends > now and (row.begins < end or row.begins <= now)]
    foreign = [row for row in met if not row.is_for(person, project)]
    return sorted(foreign, key=lambda row: (row.begins, row.key))


def _moments(rows: Iterable[Reservation], new: Reservation) -> list[float]:
    """Return the times at which the number of active reservations may rise."""
    return sorted({new.begins, *(row.begins for row in rows if row.begins > new.begins)})


@dataclass(slots=True)
class _Kept:
    """Slots of one machine that a reservation keeps, less those that its holder uses."""

    reservation: Reservation
    slots: int
    unused: int


class Timeline:
    """The slots that reservations keep on the machines of one pool, now and later."""

    def __init__(
        self,
        reservations: Sequence[Reservation],
        machines: Sequence[Size],
        running: Iterable[Running],
        now: float,
    ) -> None:
        self._now = now
        self._rows = rows = [row for row in reservations if row.ends > now]
        self._views: dict[tuple[int, frozenset[int]], View] = {}
        moments = sorted({now, *(row.begins for row in rows if row.begins > now)})
        self._points: list[tuple[float, dict[int, list[_Kept]]]] = []
        for moment in moments:
            holds, _ = spread([row for row in rows if row.begins <= moment < row.ends], machines)
            kept = {
                machine: [_Kept(hold.reservation, hold.slots, hold.slots) for hold in taken]
                for machine, taken in holds.items()
            }
            self._points.append((moment, kept))
        for attempt in running:
            self.use(attempt.machine, attempt.slots, attempt.person, attempt.project)

    def use(self, machine: int, slots: int, person: Person, project: int | None) -> None:
        """Count slots that work of a person in a project holds: they are not kept a second time."""
        for _, kept in self._points:
            left = slots
            for hold in kept.get(machine, ()):
                if hold.reservation.is_for(person, project):
                    taken = min(hold.unused, left)
                    hold.unused -= taken
                    left -= taken

    def view(self, person: Person, project: int | None, seconds: float | None) -> "View":
        """Return what work may use. Works for which the same reservations count share a view.

        Args:
            person: who submitted the work.
            project: the work's project.
            seconds: how long the work may run; None without a limit.
        """
        end = self._now + (UNLIMITED if seconds is None else seconds)
        points = max(sum(moment < end for moment, _ in self._points), 1)
        own = frozenset(row.key for row in self._rows if row.is_for(person, project))
        if (points, own) not in self._views:
            self._views[points, own] = View([kept for _, kept in self._points[:points]], own)
        return self._views[points, own]


class View:
    """The slots that reservations keep from some work, and those that they keep for it."""

    def __init__(self, points: Sequence[Mapping[int, list[_Kept]]], own: frozenset[int]) -> None:
        self._foreign: dict[int, list[list[_Kept]]] = defaultdict(list)
        for kept in points:
            for machine, holds in kept.items():
                foreign = [hold for hold in holds if hold.reservation.key not in own]
                if foreign:
                    self._foreign[machine].append(foreign)
        now = {
            machine: [hold for hold in holds if hold.reservation.key in own]
            for machine, holds in points[0].items()
        }
        self._own = {machine: holds for machine, holds in now.items() if holds}

    def kept(self, machine: int) -> int:
        """Return how many free slots of a machine the work may not use, since they are kept for others."""
        if machine not in self._foreign:
            return 0
        return max(sum(hold.unused for hold in holds) for holds in self._foreign[machine])

    def reserved(self, machine: int) -> int:
        """Return how many slots of a machine the work could not use if nothing ran."""
        if machine not in self._foreign:
            return 0
        return max(sum(hold.slots for hold in holds) for holds in self._foreign[machine])

    def first(self, machine: int) -> Reservation | None:
        """Return the first reservation that keeps slots of a machine from the work, or None."""
        return self._foreign[machine][0][0].reservation if machine in self._foreign else None

    def own(self) -> dict[int, int]:
        """Return how many slots are kept now for the work's person or project, by machine."""
        if not self._own:
            return {}
        unused = {machine: sum(hold.unused for hold in holds) for machine, holds in self._own.items()}
        return {machine: slots for machine, slots in unused.items() if slots}
