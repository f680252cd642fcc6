"""Raises this process's limit for open files, and derives how many connections fit into it."""

import resource

# A program that closes every possible descriptor would take seconds under a limit of a billion.
MAX_FILES = 65_536
# Connections of the database and the broker, files that are read or written, children.
RESERVED_FILES = 256
MIN_CONNECTIONS = 64


def raise_limit() -> int:
    """Raise the soft limit of open files to the hard one, at most `MAX_FILES`; return the new soft limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        return limit
    return MAX_FILES if soft == resource.RLIM_INFINITY else soft


def connections_within(files: int, requested: int) -> int:
    """Return how many connections to accept, at most `requested`, so that half of `files` serve requests."""
    return max(MIN_CONNECTIONS, min(requested, (files - RESERVED_FILES) // 2))
