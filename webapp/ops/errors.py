"""The error of operator commands."""


class OpsError(Exception):
    """The command failed. The message tells the operator what is wrong and what to do."""
