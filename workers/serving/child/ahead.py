"""Compiles the programs that requests will need, in a thread, while no batch runs."""

import contextlib
import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence

from workers.serving.child.failures import ShapesRefused
from workers.serving.child.programs import Key, Programs
from workers.serving.child.sizes import Sizes, between, fits

logger = logging.getLogger("trainyard.serving.child")

_MAX_SEEN = 256
_MAX_REFUSED = 1024
_IDLE_POLL_SECONDS = 0.02
_NICENESS = 2


class AheadCompiler:
    """Compiles every bucket for the sizes that were seen, then one for the lengths between them.

    It never replaces a program: it stops at the limit for programs.
    """

    def __init__(self, programs: Programs) -> None:
        self._programs = programs
        # The most recent last.
        self._seen: OrderedDict[Sizes, None] = OrderedDict()
        self._refused: set[Key] = set()
        self._news = threading.Condition()

    def warm(self, sizes: Sequence[Sizes], seconds: float) -> None:
        """Compile one program for each of these sizes, and leave the others to the thread.

        Args:
            sizes: the most recent first; those that do not fit the model's signature are left out.
            seconds: the time limit.
        """
        deadline = time.monotonic() + seconds
        fitting = [shapes for shapes in sizes if fits(shapes, self._programs.model.signature.inputs)]
        for shapes in fitting:
            if time.monotonic() > deadline or self._programs.is_full():
                break
            self._compile((self._programs.buckets[0], shapes))
        for shapes in reversed(fitting):
            self.see(shapes)

    def see(self, sizes: Sizes) -> None:
        """Add the sizes from a row that was computed."""
        with self._news:
            is_new = sizes not in self._seen
            self._seen[sizes] = None
            self._seen.move_to_end(sizes)
            if len(self._seen) > _MAX_SEEN:
                self._seen.popitem(last=False)
            if is_new:
                self._news.notify()

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._work, name="compile ahead", daemon=True).start()

    def _work(self) -> None:
        # On Linux this is the priority of this thread alone.
        with contextlib.suppress(OSError, AttributeError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
        while True:
            with self._news:
                key = self._next()
                if key is None:
                    self._news.wait()
                    continue
            while self._programs.is_busy:
                time.sleep(_IDLE_POLL_SECONDS)
            self._compile(key)

    def _next(self) -> Key | None:
        if self._programs.is_full():
            return None
        return next(
            (key for key in self._likely_keys() if not (self._programs.has(key) or key in self._refused)),
            None,
        )

    def _likely_keys(self) -> Iterator[Key]:
        buckets = self._programs.buckets
        for bucket in buckets:
            for sizes in reversed(self._seen):
                yield bucket, sizes
        for sizes in between(self._seen, self._programs.model.signature.inputs):
            yield buckets[0], sizes

    def _compile(self, key: Key) -> None:
        try:
            self._programs.compile(key)
        except ShapesRefused:
            self._refuse(key)
        # It is only an attempt of a background thread, which must not end whatever a layer or XLA raises. A
        # request that needs this program reports the failure.
        except Exception:
            logger.exception("a program could not be compiled ahead")
            self._refuse(key)

    def _refuse(self, key: Key) -> None:
        """Do not try a program again, as long as sizes that were seen ask for it."""
        self._refused.add(key)
        if len(self._refused) > _MAX_REFUSED:
            with self._news:
                self._refused.intersection_update(self._likely_keys())
