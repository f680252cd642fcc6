"""Describes a process's exit status for people."""

import signal


def describe_status(status: int) -> str:
    """Return how a process ended: "with status 1", or "by SIGKILL" for -9."""
    return f"by {signal_name(-status)}" if status < 0 else f"with status {status}"


def signal_name(number: int) -> str:
    """Return a signal's name."""
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"
