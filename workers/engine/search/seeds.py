"""Derives seeds from the search's seed and the trial's number, so that every process draws the same."""

import hashlib


def seed_of(seed: int, number: int) -> int:
    """Return a seed below 2³¹ for trial `number`; never 0, which some libraries treat as no seed."""
    digest = hashlib.sha256(f"{seed}/{number}".encode()).digest()
    return int.from_bytes(digest[:4]) % (2**31 - 1) + 1
