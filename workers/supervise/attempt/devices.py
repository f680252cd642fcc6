"""Allocates GPUs to attempts. On a machine without GPUs, attempts share the cores."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence


class NoFreeGpu(Exception):
    """Too few GPUs are left without those that an attempt must not get."""


class Devices:
    """Allocates the least used GPUs. With more slots than GPUs, several attempts share a GPU.

    Among equals it takes the first ones, so that a search gets its warm runner's GPU again.

    Args:
        ids: the CUDA_VISIBLE_DEVICES entries by GPU name.
        places: how many attempts may share a GPU.
    """

    def __init__(self, ids: Mapping[str, str] | None = None, places: int = 1) -> None:
        self._ids = dict(ids or {})
        self._places = places
        self._users = Counter[str]()
        self._attempts = defaultdict[str, set[int]](set)
        self.avoided: Collection[str] = ()
        """The names of the GPUs that a standby must leave alone, as they were last read."""

    @property
    def count(self) -> int:
        """How many GPUs there are."""
        return len(self._ids)

    @property
    def attempts(self) -> Mapping[str, Collection[int]]:
        """The attempts that hold each GPU, by its CUDA_VISIBLE_DEVICES entry."""
        return {device: tuple(attempts) for device, attempts in self._attempts.items() if attempts}

    def names_of(self, ids: Sequence[str]) -> tuple[str, ...]:
        """Return the names of GPUs with these CUDA_VISIBLE_DEVICES entries."""
        return tuple(name for name, device in self._ids.items() if device in ids)

    def next(
        self,
        count: int,
        names: Sequence[str] = (),
        avoid: Collection[str] = (),
        prefer: Collection[str] = (),
    ) -> tuple[str, ...]:
        """Return the CUDA_VISIBLE_DEVICES entries that `take` would allocate, without allocating them."""
        if names:
            return tuple(self._ids[name] for name in names if name in self._ids and name not in avoid)
        able = [device for name, device in self._ids.items() if name not in avoid]
        if avoid:
            # The slots of avoided GPUs are free, but no attempt may get another one's GPU for them.
            able = [device for device in able if self._users[device] < self._places]
        preferred = {self._ids[name] for name in prefer if name in self._ids}

        def rank(device: str) -> tuple[bool, bool, int]:
            return self._users[device] >= self._places, device not in preferred, self._users[device]

        # Sorting keeps the order of equals.
        ranked = sorted(able, key=rank)[:count]
        return tuple(device for device in able if device in ranked)

    def take(
        self,
        count: int,
        names: Sequence[str] = (),
        *,
        avoid: Collection[str] = (),
        prefer: Collection[str] = (),
        attempt: int | None = None,
    ) -> tuple[str, ...]:
        """Allocate GPUs and return their CUDA_VISIBLE_DEVICES entries.

        Args:
            count: how many GPUs; fewer are returned if there are fewer.
            names: allocates these, in this order, even if other attempts use them.
            avoid: the names of GPUs that the attempt must not get: others hold their memory, they are
                reserved for others, or its spec asks for other ones.
            prefer: the names of GPUs that it gets first where they are free: they are reserved for it.
            attempt: who takes them.

        Raises:
            NoFreeGpu: without those to avoid there are too few.
        """
        chosen = self.next(count, names, avoid, prefer)
        if len(chosen) < len(self.next(count, names)):
            raise NoFreeGpu
        self._users.update(chosen)
        if attempt is not None:
            for device in chosen:
                self._attempts[device].add(attempt)
        return chosen

    def give_back(self, ids: Sequence[str], attempt: int | None = None) -> None:
        """Let other attempts have GPUs."""
        self._users.subtract(ids)
        for device in ids:
            if attempt is not None:
                self._attempts[device].discard(attempt)
