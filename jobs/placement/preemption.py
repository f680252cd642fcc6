"""Chooses the running work that makes room for waiting work of higher priority.

Only work of lower priority that can continue from a checkpoint is asked, and never one that uses slots
reserved for it. Since the priority must be lower, two jobs never preempt each other in turn.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from jobs.placement import sentences
from jobs.placement.state import Machine, Preemption, Running, State, Work

type Usable = Callable[[Machine, Sequence[Running]], int]


class Candidates:
    """The running work of each machine."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._leaving: dict[int, list[Running]] = defaultdict(list)
        self._running: dict[int, list[Running]] = defaultdict(list)
        for attempt in state.running:
            if attempt.leaves_for is not None:
                self._leaving[attempt.machine].append(attempt)
            elif attempt.resumes and not self._is_reserved_for(attempt):
                self._running[attempt.machine].append(attempt)

    def make_room(
        self, work: Work, machines: Iterable[Machine], usable: Usable
    ) -> tuple[list[Preemption], str]:
        """Return the running work to preempt, and a sentence for the waiting one; neither if none would do.

        Args:
            work: the work that waits.
            machines: those for which it waits.
            usable: returns how many slots of a machine it can use once some running work has left.
        """
        best: tuple[tuple[int, int, int], list[Running]] | None = None
        for machine in machines:
            leaving = self._leaving[machine.key]
            if leaving and usable(machine, leaving) >= work.slots:
                # An earlier decision has made room.
                return [], sentences.makes_room(leaving)
            victims = self._victims(machine, work, usable)
            if victims:
                cost = (max(v.priority for v in victims), sum(v.slots for v in victims), machine.key)
                best = min(best or (cost, victims), (cost, victims), key=lambda option: option[0])
        if best is None:
            return [], ""
        for victim in best[1]:
            self._running[victim.machine].remove(victim)
            self._leaving[victim.machine].append(victim)
        return [Preemption(victim, work) for victim in best[1]], sentences.makes_room(best[1])

    def _victims(self, machine: Machine, work: Work, usable: Usable) -> list[Running]:
        """Return what must leave a machine so that work has room; empty if that is not enough."""
        lower = [attempt for attempt in self._running[machine.key] if attempt.priority < work.priority]
        # The lowest priority first, and of these the youngest, which has done the least.
        lower.sort(key=lambda attempt: (attempt.priority, -attempt.started, attempt.key))
        leaving = self._leaving[machine.key]
        for count in range(1, len(lower) + 1):
            if usable(machine, [*leaving, *lower[:count]]) >= work.slots:
                return self._needed(lower[:count], lambda rest: usable(machine, [*leaving, *rest]), work)
        return []

    def _needed(
        self, victims: list[Running], usable: Callable[[list[Running]], int], work: Work
    ) -> list[Running]:
        """Return the victims without those that need not leave, such as work with none of the devices."""
        for attempt in reversed(victims):
            rest = [victim for victim in victims if victim is not attempt]
            if usable(rest) >= work.slots:
                victims = rest
        return victims

    def _is_reserved_for(self, attempt: Running) -> bool:
        now = self._state.now
        return any(
            row.begins <= now < row.ends and row.is_for(attempt.person, attempt.project)
            for row in self._state.reservations
        )
