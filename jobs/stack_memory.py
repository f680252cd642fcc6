"""Gives a thread one large block of memory for the frames of its Python functions.

CPython keeps the frames of a thread in blocks of 16 KiB. A function that is called again and again just where
a block ends takes a new block from the kernel for each call and gives it back, about 7 µs each time: a page
of the dashboard did so 80 to 120 times, a test process a million times. Where that happens depends on the
depth of the calls, so a change elsewhere can cause or cure it.
"""

from collections.abc import Callable

FRAME_SLOTS = 66_000
"""Slots of 8 bytes in the frame of `call`: more than half a megabyte, so its block has a megabyte. Only what
frames have reached uses memory."""


def call[**P, R](function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function whose own calls, however often they return, need no further blocks."""
    return function(*args, **kwargs)


# A block is as large as its first frame needs, rounded up to a power of two; later frames use the rest.
call.__code__ = call.__code__.replace(co_stacksize=FRAME_SLOTS)
