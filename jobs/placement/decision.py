"""Decides which waiting work gets slots, why the rest waits, and which running work makes room.

The order is priority, then the shares of persons, then age; see `shares`. Work that waits for slots blocks
the machines that could run it for all work behind it, so that small works never starve a large one.
"""

import heapq
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence

from jobs.placement import sentences
from jobs.placement.preemption import Candidates
from jobs.placement.reservations import Size, Timeline, View
from jobs.placement.shares import Turns
from jobs.placement.state import Decision, Machine, Person, Placement, Room, Running, State, Work

type _Kind = tuple[Hashable, int, View | None]


def decide(state: State) -> Decision:
    """Return the placements, the reasons of the remaining work, and the preemptions."""
    return _Pass(state).run()


class _Choice:
    """The machines for works that are alike, the one with the most usable slots first.

    During a pass, a machine never gets more usable slots. So an entry of the heap is at worst too high, and a
    choice that is exhausted stays so. Nor is a machine that is blocked opened again.

    Attributes:
        machines: the machines.
        usable: how many slots of a machine the works can use.
        view: what reservations keep from the works.
        is_exhausted: whether none has room for one more.
        first: the work behind which all of them wait, once no machine is left for which they could wait.
    """

    def __init__(self, machines: list[Machine], usable: "_Usable", view: View | None) -> None:
        self.machines, self.usable, self.view = machines, usable, view
        self.is_exhausted = False
        self.first: Work | None = None
        self._heap = [(-usable(machine), place) for place, machine in enumerate(machines)]
        heapq.heapify(self._heap)

    def best(self, blocked: dict[int, Work]) -> tuple[Machine, int] | None:
        """Return the machine with the most usable slots, and their number. None if all are blocked."""
        while self._heap:
            known, place = self._heap[0]
            machine = self.machines[place]
            if machine.key in blocked:
                heapq.heappop(self._heap)
                continue
            slots = self.usable(machine)
            if slots == -known:
                return machine, slots
            heapq.heapreplace(self._heap, (-slots, place))
        return None


class _Usable:
    """Computes how many slots of a machine one kind of work can use now.

    Args:
        free: the free slots of each machine.
        view: what reservations keep from the work.
        rooms: the devices of machines for the work.
        placed: how many slots of each machine got devices in this pass.
    """

    def __init__(
        self,
        free: Mapping[int, int],
        view: View | None,
        rooms: Mapping[int, Room],
        placed: Mapping[int, int],
    ) -> None:
        self._free, self._view, self._rooms, self._placed = free, view, rooms, placed

    def __call__(self, machine: Machine, leaving: Sequence[Running] = ()) -> int:
        """Return how many slots the work can use; with `leaving`, once these attempts have left."""
        free = self._free[machine.key]
        # Mostly nothing leaves, and this is called for each machine and kind of work.
        if leaving:
            free += sum(attempt.slots for attempt in leaving)
        if self._view is not None:
            free -= self._view.kept(machine.key)
        room = self._rooms.get(machine.key)
        return free if room is None else room.slots(free, self._placed[machine.key], leaving)


class _Pass:
    """One decision."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._machines = {machine.key: machine for machine in state.machines}
        self._free = {machine.key: machine.free for machine in state.machines}
        self._blocked: dict[int, Work] = {}
        self._with_devices: dict[int, int] = defaultdict(int)
        self._choices: dict[_Kind, _Choice] = {}
        self._choice_of: dict[int, _Choice] = {}
        self._of_person: dict[Person, int] = defaultdict(int)
        self._of_project: dict[int | None, int] = defaultdict(int)
        self._of_job: dict[int, int] = defaultdict(int)
        self._lanes: dict[tuple[str, Person], int] = defaultdict(int)
        for attempt in state.running:
            self._of_person[attempt.person] += attempt.slots
            self._of_project[attempt.project] += attempt.slots
            self._of_job[attempt.job] += 1
            if attempt.machine in self._machines:
                self._lanes[self._machines[attempt.machine].pool, attempt.person] += attempt.slots
        self._timelines = _timelines(state)
        self._views: dict[Hashable, View] = {}
        self._decision = Decision()

    def run(self) -> Decision:
        turns = Turns(self._state.waiting, self._state.used, self._lanes, self._state.now)
        blocking = []
        for work in turns:
            reason = work.refusal or self._why_none_fits(work) or self._why_at_limit(work)
            if reason:
                self._decision.reasons[work.key] = reason
                continue
            machine = self._choose(work)
            if machine is not None:
                self._place(work, machine)
                turns.charge(work)
            elif work.near_reason and self._has_room(work):
                # It waits for a machine with its checkpoint, which blocks no other work.
                self._decision.reasons[work.key] = work.near_reason
            else:
                if self._explain(work):
                    blocking.append(work)
                turns.charge(work)
        self._preempt(blocking)
        return self._decision

    def _why_none_fits(self, work: Work) -> str:
        return "" if self._state.fitting.get(work.needs) else sentences.none_fits(work)

    def _why_at_limit(self, work: Work) -> str:
        """Return the limit that keeps work from starting, or an empty string."""
        state = self._state
        if work.person is not None and (limit := state.of_person.get(work.person)) is not None:
            used = self._of_person[work.person]
            if used + work.slots > limit.slots:
                return sentences.at_limit_of_person(limit, used)
        if work.project is not None and (limit := state.of_project.get(work.project)) is not None:
            used = self._of_project[work.project]
            if used + work.slots > limit.slots:
                return sentences.at_limit_of_project(limit, used)
        if work.most is not None and self._of_job[work.job] >= work.most:
            return work.most_reason
        return ""

    def _choose(self, work: Work) -> Machine | None:
        """Return the machine on which work is placed: one that has its checkpoints, if there is one."""
        usable = self._choice(work).usable
        if (reserved := self._reserved_for(work, usable)) is not None:
            return reserved
        if work.near:
            near = [m for m in self._fitting(work) if m.key in work.near and m.key not in self._blocked]
            best = max(near, key=usable, default=None)
            if best is not None and usable(best) >= work.slots:
                return best
        return None if work.near_reason or not self._has_room(work) else self._best(work)

    def _reserved_for(self, work: Work, usable: _Usable) -> Machine | None:
        """Return a machine that has enough slots reserved for the work, also if other work waits for it."""
        view = self._choice(work).view
        if view is None or not (own := view.own()):
            return None
        fitting = (machine for machine in self._fitting(work) if own.get(machine.key, 0) >= work.slots)
        return next((machine for machine in fitting if usable(machine) >= work.slots), None)

    def _best(self, work: Work) -> Machine | None:
        best = self._choice(work).best(self._blocked)
        return best[0] if best is not None and best[1] >= work.slots else None

    def _has_room(self, work: Work) -> bool:
        """Return whether some machine has enough usable slots."""
        choice = self._choice(work)
        if not choice.is_exhausted and self._best(work) is None:
            choice.is_exhausted = True
        return not choice.is_exhausted

    def _place(self, work: Work, machine: Machine) -> None:
        self._decision.placements.append(Placement(work, machine.key))
        self._free[machine.key] -= work.slots
        if work.takes_devices:
            self._with_devices[machine.key] += work.slots
        self._of_person[work.person] += work.slots
        self._of_project[work.project] += work.slots
        self._of_job[work.job] += 1
        if (timeline := self._timelines.get(work.pool)) is not None:
            timeline.use(machine.key, work.slots, work.person, work.project)

    def _explain(self, work: Work) -> bool:
        """Give the reason of work for which no machine has room, and block the machines that it waits for.

        Return whether it blocks any.
        """
        choice, reasons = self._choice(work), self._decision.reasons
        if choice.first is not None:
            reasons[work.key] = sentences.behind(work, choice.first)
            return False
        fitting = choice.machines
        open_ = [machine for machine in fitting if machine.key not in self._blocked]
        if all(machine.closed for machine in fitting):
            # The machines are not blocked: all their works wait for this reason, and each shows it.
            reasons[work.key] = fitting[0].closed
            return False
        waited_for = [machine for machine in open_ if not self._is_reserved(machine, work)]
        if waited_for:
            total = sum(machine.slots for machine in fitting)
            free = max(choice.usable(machine) for machine in open_)
            texts = (*(machine.note for machine in fitting), work.note)
            notes = " ".join(dict.fromkeys(text for text in texts if text))
            reasons[work.key] = sentences.no_room(work, total, max(free, 0), notes)
            for machine in waited_for:
                self._blocked[machine.key] = work
            return True
        first = next((self._blocked[m.key] for m in fitting if m.key in self._blocked), None)
        if first is not None:
            choice.first = first
            reasons[work.key] = sentences.behind(work, first)
        else:
            reasons[work.key] = self._describe_reservation(work, fitting)
        return False

    def _is_reserved(self, machine: Machine, work: Work) -> bool:
        """Return whether others' reservations leave too few slots of a machine, even if nothing ran there."""
        view = self._choice(work).view
        return view is not None and machine.slots - view.reserved(machine.key) < work.slots

    def _describe_reservation(self, work: Work, fitting: Iterable[Machine]) -> str:
        view = self._choice(work).view
        for machine in fitting:
            if view is not None and (row := view.first(machine.key)) is not None:
                return sentences.reserved_while_it_runs(row, machine.name, work.seconds, self._state.now)
        raise AssertionError(f"no reservation hinders job {work.job}")

    def _preempt(self, blocking: list[Work]) -> None:
        """Ask running work to make room for the work that blocks machines, where that is switched on."""
        candidates = Candidates(self._state)
        for work in blocking:
            if work.pool not in self._state.preempting:
                continue
            waited_for = [
                machine
                for machine in self._fitting(work)
                if self._blocked.get(machine.key) is work and not machine.closed
            ]
            preemptions, reason = candidates.make_room(work, waited_for, self._choice(work).usable)
            self._decision.preemptions += preemptions
            if reason:
                self._decision.reasons[work.key] += f" {reason}"

    def _fitting(self, work: Work) -> list[Machine]:
        return self._choice(work).machines

    def _view(self, work: Work) -> View | None:
        """Return what reservations in the work's pool keep from it; None if there are none."""
        timeline = self._timelines.get(work.pool)
        if timeline is None:
            return None
        who = (work.pool, work.person, work.project, work.seconds)
        if who not in self._views:
            self._views[who] = timeline.view(work.person, work.project, work.seconds)
        return self._views[who]

    def _choice(self, work: Work) -> _Choice:
        """Return the machines for work. It is asked for several times, and its key takes long to compute."""
        known = self._choice_of.get(work.key)
        if known is not None:
            return known
        view = self._view(work)
        kind = (work.needs, work.slots, view)
        choice = self._choices.get(kind)
        if choice is None:
            machines = [self._machines[key] for key in self._state.fitting[work.needs]]
            rooms = self._state.rooms.get(work.needs, {})
            usable = _Usable(self._free, view, rooms, self._with_devices)
            choice = self._choices[kind] = _Choice(machines, usable, view)
        self._choice_of[work.key] = choice
        return choice


def _timelines(state: State) -> dict[str, Timeline]:
    """Return the reservations of each pool that has some."""
    timelines = {}
    for pool in {row.pool for row in state.reservations}:
        machines = [machine for machine in state.machines if machine.pool == pool]
        sizes = [Size(machine.key, machine.name, machine.slots) for machine in machines]
        keys = {machine.key for machine in machines}
        rows = [row for row in state.reservations if row.pool == pool]
        running = [attempt for attempt in state.running if attempt.machine in keys]
        timelines[pool] = Timeline(rows, sizes, running, state.now)
    return timelines
