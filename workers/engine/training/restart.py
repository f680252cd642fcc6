"""Reports that a training begins at its first epoch again although earlier attempts were further."""

from collections.abc import Sequence

from jobs.messages.task import CheckpointFolder, EarlierTraining
from workers.engine.report import Report

RESTARTED = "restarted"
"""The code of the warning."""


def report_restart(
    report: Report,
    earlier: EarlierTraining | None,
    candidates: Sequence[CheckpointFolder],
    *,
    name: str = "The training",
    reason: str = "",
) -> None:
    """Report a start from the first epoch, unless nothing was trained before.

    Args:
        report: gets a warning; only a line in the log if there was never a checkpoint.
        earlier: how far the training was.
        candidates: the checkpoints from which it could have resumed.
        name: what begins again.
        reason: why it cannot resume; empty if no candidate is complete.
    """
    if earlier is None:
        return
    reason = reason or earlier.reason or _describe_candidates(candidates)
    before = f"reached epoch {earlier.epoch}" if earlier.epoch else "begun"
    sentence = f"{name} begins again at epoch 1, although it had {before}: {reason}."
    if earlier.had_checkpoint and earlier.epoch:
        report.warning(RESTARTED, sentence)
    else:
        report.log(sentence, level="warning")


def _describe_candidates(candidates: Sequence[CheckpointFolder]) -> str:
    if not candidates:
        return "no checkpoint of it is kept"
    places = ", ".join(f"epoch {candidate.epoch} in {candidate.folder}" for candidate in candidates)
    return f"none of its checkpoints is complete on this worker ({places})"
