"""Allocates accelerators to attempts. On a machine without accelerators, attempts share the cores."""

from collections.abc import Sequence


class Devices:
    """Allocates devices by name, lowest first, so that a search gets its warm runner's device again."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self._names = list(names)
        self._allocated: set[str] = set()

    def next_free(self, count: int) -> tuple[str, ...]:
        """Return the devices that `take` would allocate, without allocating them."""
        return tuple([name for name in self._names if name not in self._allocated][:count])

    def take(self, count: int) -> tuple[str, ...]:
        """Allocate `count` free devices, or as many as there are."""
        chosen = self.next_free(count)
        self._allocated.update(chosen)
        return chosen

    def give_back(self, names: Sequence[str]) -> None:
        self._allocated.difference_update(names)
