"""The error of operator commands."""


class OpsError(Exception):
    """The command failed. The message names the problem and a remedy."""
