"""Computes which GPUs of one worker a kind of job may get, and the room that they are. No database."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from jobs.placement.state import Room
from jobs.spec.checks.gpu_memory import DeviceState, MemoryNeed, lacks_memory, places_of_gpu
from jobs.spec.checks.gpus import is_wanted
from jobs.spec.sections.gpu import GpuWish, gpu_devices


class Wish(NamedTuple):
    """The GPUs that a job wants of a worker.

    Attributes:
        takes_gpus: whether its attempts get GPUs where there are some.
        need: the memory on each.
        slots: how many it wants.
        names: those that it asks for by name.
        gpu: the model and the memory that it asks for; None for any GPU.
        kept: the names of those of one worker that are reserved for others while it may run.
    """

    takes_gpus: bool
    need: MemoryNeed
    slots: int
    names: frozenset[str] = frozenset()
    gpu: GpuWish | None = None
    kept: frozenset[str] = frozenset()

    def accepts(self, device: DeviceState) -> bool:
        """Return whether a GPU is one of those that the job asks for, and not reserved for others."""
        if device["name"] in self.kept:
            return False
        return self.gpu is None or all(is_wanted(self.gpu, found) for found in gpu_devices([device]))


class Box:
    """The GPUs of a worker beside its open attempts.

    Args:
        slots: the worker's slots.
        devices: its GPUs, as it reports them.
        share: the share of a GPU that each run takes at its start; see `MemoryNeed.bytes_of`.
        attempts: its open attempts that use GPUs, with their slots.
    """

    def __init__(
        self,
        slots: int,
        devices: Sequence[DeviceState],
        *,
        share: float | None = None,
        attempts: Mapping[int, int],
    ) -> None:
        self._devices, self._share, self._attempts = devices, share, attempts
        self._places = places_of_gpu(slots, len(devices))
        self._holders = {device["name"]: _holders(device, attempts) for device in devices}
        self._open: dict[tuple[Wish, bool], list[DeviceState]] = {}
        self._rooms: dict[Wish, Room | None] = {}
        self._held: dict[Wish, list[DeviceState]] = {}
        self._reported = {pk for device in devices for pk in device.get("attempts", ())}

    def has_enough(self, wish: Wish, *, runs: bool = True) -> bool:
        """Return whether enough GPUs are open to a job; `runs`: beside the worker's own attempts."""
        able = self.open_to(wish, runs=runs)
        if wish.names:
            return wish.names <= {device["name"] for device in able}
        return len(able) >= self._least(wish)

    def room(self, wish: Wish) -> Room | None:
        """Return the free GPUs for a job; None if the worker's free slots alone decide."""
        if wish not in self._rooms:
            self._rooms[wish] = self._room(wish)
        return self._rooms[wish]

    def _room(self, wish: Wish) -> Room | None:
        # Jobs that name their GPUs share them.
        if wish.names and self.has_enough(wish):
            return None
        # Once another run has left a GPU that this job names, the next pass sees its memory.
        if wish.names:
            return Room(0, wish.slots)
        places = [self._places - len(self._holders[device["name"]]) for device in self.open_to(wish)]
        free = sum(place for place in places if place > 0)
        # Attempts that were placed since the worker's last report will take GPUs of these.
        free -= sum(slots for pk, slots in self._attempts.items() if pk not in self._reported)
        least = self._least(wish)
        # Several places on one GPU are no substitute for several GPUs.
        if sum(place > 0 for place in places) < least:
            free = min(free, least - 1)
        return Room(free, least, self._freed(wish))

    def held_from(self, wish: Wish) -> list[DeviceState]:
        """Return the GPUs of the kind that a job asks for whose memory is held."""
        if wish not in self._held:
            able = {device["name"] for device in self.open_to(wish)}
            accepted = [device for device in self._devices if wish.accepts(device)]
            self._held[wish] = [device for device in accepted if device["name"] not in able]
        return self._held[wish]

    def used_by_jobs(self, wish: Wish) -> list[str]:
        """Return the GPUs of the kind that a job asks for, where other jobs use all of them."""
        if wish.gpu is None:
            return []
        accepted = [device["name"] for device in self._devices if wish.accepts(device)]
        used = [name for name in accepted if len(self._holders[name]) >= self._places]
        return used if len(accepted) - len(used) < wish.slots else []

    def open_to(self, wish: Wish, *, runs: bool = True) -> list[DeviceState]:
        """Return the GPUs with enough free memory for a job; `runs`: beside the worker's own attempts."""
        key = (wish, runs)
        if key not in self._open:
            self._open[key] = [
                device
                for device in self._devices
                if wish.accepts(device)
                and not lacks_memory(
                    device, wish.need, self._share, runs=runs and bool(self._holders[device["name"]])
                )
            ]
        return self._open[key]

    def _least(self, wish: Wish) -> int:
        """Return how many GPUs a job needs. One with more slots than there are GPUs gets all of them."""
        return min(wish.slots, len(self._devices)) if wish.gpu is None else wish.slots

    def _freed(self, wish: Wish) -> dict[int, int]:
        """Return for how many slots each open attempt would free GPUs for a job, by attempt."""
        able = {device["name"] for device in self.open_to(wish)}
        freed = defaultdict(
            int, {pk: slots for pk, slots in self._attempts.items() if pk not in self._reported}
        )
        for device in self.open_to(wish, runs=False):
            holders = self._holders[device["name"]]
            if device["name"] in able:
                for pk in holders:
                    freed[pk] += 1
            # One run fills its memory. Of several, none alone makes room for sure.
            elif len(holders) == 1:
                freed[next(iter(holders))] += self._places
        return freed


def _holders(device: DeviceState, attempts: Collection[int]) -> set[int]:
    """Return the open attempts that hold a GPU. A report may be older than an attempt's end."""
    return set(device.get("attempts", ())) & set(attempts)
