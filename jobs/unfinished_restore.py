"""Recognizes a home whose restore was killed: half of it is new, and half of it is old or missing."""

from pathlib import Path

from jobs import program

MARKER = "restore.unfinished"
"""The file in the home that exists from a restore's first change to its last."""


def problem(home: Path) -> str | None:
    """Return why nothing may start on a home, in a sentence; None if no restore was interrupted."""
    if not (home / MARKER).exists():
        return None
    return (
        f"A restore into {home} was interrupted, or still runs: its state is incomplete. Restore the backup "
        f"again with `{program.command_line('restore FILE')}`; --force is not needed."
    )
