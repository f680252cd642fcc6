"""The frames of functions below `stack_memory.call` need no further memory from the kernel."""

import resource
from concurrent.futures import ThreadPoolExecutor

from jobs import stack_memory

DEPTHS = 300
"""Frames of as many calls fill more than one of CPython's blocks."""
CALLS = 100


def test_calls_at_any_depth_take_no_block_from_the_kernel_again_and_again() -> None:
    # In a thread of its own: the test process itself runs in such a block.
    with ThreadPoolExecutor(1) as thread:
        faults = thread.submit(stack_memory.call, faults_of_calls_at_all_depths).result()
    assert faults < CALLS


def faults_of_calls_at_all_depths() -> int:
    """Return the page faults of calls from each of many depths; each new block causes one at least."""
    call_at_all_depths(DEPTHS)
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    call_at_all_depths(DEPTHS)
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before


def call_at_all_depths(depth: int) -> None:
    for _ in range(CALLS):
        nothing()
    if depth:
        call_at_all_depths(depth - 1)


def nothing() -> None: ...


def test_arguments_and_answer_are_passed_on() -> None:
    assert stack_memory.call(max, [1, 3, 2], key=lambda number: -number) == 1
