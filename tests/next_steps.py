"""Checks that a warning has a consequence and, as its last sentence, a next step."""

VERBS = {"Set", "Use", "Choose", "Add", "Run", "Leave", "Raise", "Search", "Start", "Keep", "Serve"}


def has_next_step(message: str) -> bool:
    """Return whether the last sentence of a message is an instruction to the reader."""
    consequence, _, step = message.removesuffix(".").rpartition(". ")
    return message.endswith(".") and len(consequence) > 20 and step.split(" ")[0] in VERBS
