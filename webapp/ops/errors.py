"""What stops an operator's command, in words for the operator."""


class OpsError(Exception):
    """The command cannot go on. The text says what is wrong and what would help."""
