"""Sees how many bytes of live arrays each device has. Importing it imports JAX."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
from keras.src.backend.jax import distribution_lib

from workers.engine import killpoint


class LiveBytes:
    """Records the most bytes that each stage had on one device."""

    def __init__(self) -> None:
        self.most: defaultdict[str, int] = defaultdict(int)

    def see(self, stage: str) -> None:
        held_by: defaultdict[Any, dict[int, int]] = defaultdict(dict)
        for array in jax.live_arrays():
            for shard in array.addressable_shards:
                held_by[shard.device][shard.data.unsafe_buffer_pointer()] = shard.data.nbytes
        most = max((sum(sizes.values()) for sizes in held_by.values()), default=0)
        self.most[stage] = max(self.most[stage], most)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look whenever a variable gets a value, and at each point where a test may kill the process."""
        distribute = distribution_lib.distribute_tensor

        def see_and_distribute(value: Any, layout: Any) -> Any:
            # A value that is whole on one device is there at this moment.
            self.see("assign")
            return distribute(value, layout)

        distribution_lib.distribute_tensor = see_and_distribute
        killpoint.handler = self.see
        yield
