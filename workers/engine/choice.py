"""Which way of running steps is the faster one for a model: timed once, and remembered where programs are."""

from typing import Literal, get_args

from workers.engine import ahead, compilecache

Way = Literal["many", "one"]
WAYS: tuple[Way, ...] = get_args(Way)
"""Many steps a call, or one: equal but for rounding."""


class Choice:
    """The way of one model's programs, None until somebody has timed both.

    Args:
        key: of the programs; None to remember nothing beyond this process.
    """

    def __init__(self, key: str | None) -> None:
        self._key = key
        self.way = self._recall()

    def make(self, way: Way) -> None:
        """Settle on a way, for later processes on machines like this one too."""
        self.way = way
        if self._key is not None and (cache := compilecache.in_use()) is not None:
            cache.put(self._file, way.encode())

    def _recall(self) -> Way | None:
        cache = compilecache.in_use() if self._key is not None else None
        kept = cache.get(self._file) if cache is not None else None
        return next((way for way in WAYS if kept == way.encode()), None)

    @property
    def _file(self) -> str:
        return f"way-{ahead.digest({'key': self._key, 'made of': ahead.made_of()})}"
