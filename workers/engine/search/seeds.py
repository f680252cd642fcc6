"""Seeds of models: from the search's own and the trial's number, so every process draws alike."""

import hashlib


def seed_of(seed: int, number: int) -> int:
    """Return a seed below 2³¹ for trial `number` of a search; never 0, which some libraries take for none."""
    digest = hashlib.sha256(f"{seed}/{number}".encode()).digest()
    return int.from_bytes(digest[:4]) % (2**31 - 1) + 1
