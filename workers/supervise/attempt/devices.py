"""Allocates GPUs to attempts. On a machine without GPUs, attempts share the cores."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence


class Devices:
    """Allocates the least used GPUs. With more slots than GPUs, several attempts share a GPU.

    Among equals it takes the first ones, so that a search gets its warm runner's GPU again.

    Args:
        ids: the CUDA_VISIBLE_DEVICES entries by GPU name.
    """

    def __init__(self, ids: Mapping[str, str] | None = None) -> None:
        self._ids = dict(ids or {})
        self._users = Counter[str]()

    @property
    def count(self) -> int:
        """How many GPUs there are."""
        return len(self._ids)

    def next(self, count: int, names: Sequence[str] = (), avoid: Collection[str] = ()) -> tuple[str, ...]:
        """Return the CUDA_VISIBLE_DEVICES entries that `take` would allocate, without allocating them."""
        if names:
            return tuple(self._ids[name] for name in names if name in self._ids and name not in avoid)
        able = [device for name, device in self._ids.items() if name not in avoid]
        # Sorting keeps the order of equals.
        ranked = sorted(able, key=lambda device: self._users[device])[:count]
        return tuple(device for device in able if device in ranked)

    def take(self, count: int, names: Sequence[str] = (), *, avoid: Collection[str] = ()) -> tuple[str, ...]:
        """Allocate GPUs and return their CUDA_VISIBLE_DEVICES entries.

        Args:
            count: how many GPUs; fewer are returned if there are fewer.
            names: allocates these, in this order, even if other attempts use them.
            avoid: the names of GPUs that the attempt must not get.
        """
        chosen = self.next(count, names, avoid)
        self._users.update(chosen)
        return chosen

    def give_back(self, ids: Sequence[str]) -> None:
        self._users.subtract(ids)
