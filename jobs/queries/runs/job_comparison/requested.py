"""Reads which jobs, experiments and versions an address asks to compare."""

import re
from collections.abc import Sequence
from typing import NamedTuple

MAX_SUBJECTS = 50
"""The most jobs, experiments and versions that one comparison shows."""
MAX_ID = 2**63 - 1
VERSION = re.compile(r"([a-z0-9][a-z0-9_-]{0,62}):([1-9]\d{0,8})", re.ASCII)


class Requested(NamedTuple):
    """The things to compare, each once, in the order of the address.

    Attributes:
        jobs: their ids.
        experiments: their ids.
        versions: model names and numbers.
        unreadable: words that name none of these.
        left_out: how many were requested beyond `MAX_SUBJECTS`.
    """

    jobs: tuple[int, ...] = ()
    experiments: tuple[int, ...] = ()
    versions: tuple[tuple[str, int], ...] = ()
    unreadable: tuple[str, ...] = ()
    left_out: int = 0


def read_requested(
    jobs: Sequence[str] = (), experiments: Sequence[str] = (), versions: Sequence[str] = ()
) -> Requested:
    """Read the parameters of an address: ids, and versions as `model:number`. Nothing is refused."""
    unreadable = [
        *(f"job {text[:80]}" for text in jobs if _id_of(text) is None),
        *(f"experiment {text[:80]}" for text in experiments if _id_of(text) is None),
        *(f"version {text[:80]}" for text in versions if not VERSION.fullmatch(text)),
    ]
    job_ids = dict.fromkeys(pk for text in jobs if (pk := _id_of(text)) is not None)
    experiment_ids = dict.fromkeys(pk for text in experiments if (pk := _id_of(text)) is not None)
    keys = dict.fromkeys(
        (match[1], int(match[2])) for text in versions if (match := VERSION.fullmatch(text)) is not None
    )
    count = len(job_ids) + len(experiment_ids) + len(keys)
    kept_jobs = tuple(job_ids)[:MAX_SUBJECTS]
    kept_experiments = tuple(experiment_ids)[: MAX_SUBJECTS - len(kept_jobs)]
    room = MAX_SUBJECTS - len(kept_jobs) - len(kept_experiments)
    return Requested(
        kept_jobs,
        kept_experiments,
        tuple(keys)[:room],
        tuple(dict.fromkeys(unreadable))[:MAX_SUBJECTS],
        max(0, count - MAX_SUBJECTS),
    )


def _id_of(text: str) -> int | None:
    is_id = text.isascii() and text.isdecimal() and len(text) < 20 and 0 < int(text) <= MAX_ID
    return int(text) if is_id else None
