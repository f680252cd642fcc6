"""Which accelerators are taken. A machine without any shares its cores instead."""

from collections.abc import Sequence


class Devices:
    """Hands out devices by name, lowest first, so that a search finds its warm runner's device again."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self._names = list(names)
        self._taken: set[str] = set()

    def next_free(self, count: int) -> tuple[str, ...]:
        """Return what `take` would; they stay free."""
        return tuple([name for name in self._names if name not in self._taken][:count])

    def take(self, count: int) -> tuple[str, ...]:
        """Return `count` free devices, or as many as there are; none on a machine without any."""
        chosen = self.next_free(count)
        self._taken.update(chosen)
        return chosen

    def give_back(self, names: Sequence[str]) -> None:
        """Make devices free again."""
        self._taken.difference_update(names)
