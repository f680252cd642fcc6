"""Bounds the memory that bodies use while they are read or answered."""

from workers.model_process.errors import NoRoom

# Of each body. So clients with small bodies never wait for those with large ones.
FREE_BYTES = 256 * 2**10


class BodyMemory:
    """Counts bytes in bodies beyond their first `FREE_BYTES`.

    Args:
        most: the most bytes. A single body has its own limit.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._used = 0

    def resize(self, held: int, size: int) -> int:
        """Count a body that has grown; return the bytes that are counted for it now.

        Args:
            held: the bytes that are counted for it so far.
            size: its bytes.

        Raises:
            NoRoom: with it, the bodies would take too much memory.
        """
        counted = max(held, size - FREE_BYTES)
        others = self._used - held
        if others and counted > held and others + counted > self._most:
            raise NoRoom("Too many large bodies are being read", retry_after=1)
        self._used = others + counted
        return counted

    def free(self, held: int) -> None:
        """Stop counting a body."""
        self._used -= held
