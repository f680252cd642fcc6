"""Chooses the running work that makes room for waiting work of higher priority.

Only work of lower priority that can continue from a checkpoint is asked, and never one that uses slots
reserved for it. Since the priority must be lower, two jobs never preempt each other in turn.
"""

from collections import defaultdict
from collections.abc import Mapping

from jobs.placement import sentences
from jobs.placement.state import Machine, Preemption, Running, State, Work


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

    def make_room(self, work: Work, machines: Mapping[Machine, int]) -> tuple[list[Preemption], str]:
        """Return the running work to preempt, and a sentence for the waiting one; neither if none would do.

        Args:
            work: the work that waits.
            machines: those for which it waits, and how many of their slots it could use now.
        """
        best: tuple[tuple[int, int, int], list[Running]] | None = None
        for machine, usable in machines.items():
            leaving = self._leaving[machine.key]
            missing = work.slots - usable - sum(attempt.slots for attempt in leaving)
            if leaving and missing <= 0:
                # An earlier decision has made room.
                return [], sentences.makes_room(leaving)
            victims = self._victims(machine, work, missing)
            if victims:
                cost = (max(v.priority for v in victims), sum(v.slots for v in victims), machine.key)
                best = min(best or (cost, victims), (cost, victims), key=lambda option: option[0])
        if best is None:
            return [], ""
        for victim in best[1]:
            self._running[victim.machine].remove(victim)
            self._leaving[victim.machine].append(victim)
        return [Preemption(victim, work) for victim in best[1]], sentences.makes_room(best[1])

    def _victims(self, machine: Machine, work: Work, missing: int) -> list[Running]:
        """Return what must leave a machine so that work has room; empty if that is not enough."""
        lower = [attempt for attempt in self._running[machine.key] if attempt.priority < work.priority]
        # The lowest priority first, and of these the youngest, which has done the least.
        lower.sort(key=lambda attempt: (attempt.priority, -attempt.started, attempt.key))
        victims: list[Running] = []
        for attempt in lower:
            if missing <= 0:
                break
            victims.append(attempt)
            missing -= attempt.slots
        return victims if missing <= 0 else []

    def _is_reserved_for(self, attempt: Running) -> bool:
        now = self._state.now
        return any(
            row.begins <= now < row.ends and row.is_for(attempt.person, attempt.project)
            for row in self._state.reservations
        )
