"""Reminds users of findings about the target that are not decided yet, before they train a model."""

from typing import NamedTuple

from jobs.models import DatasetVersion


class TargetDoubts(NamedTuple):
    """Findings about a version's target, each of which has a choice."""

    version: DatasetVersion
    target: str
    findings: tuple[str, ...]


def doubts_on(version: DatasetVersion | None) -> TargetDoubts | None:
    """Return the findings about a version's target that have a choice; None if there are none."""
    profile = version.profile if version is not None else None
    if version is None or profile is None:
        return None
    findings = dict.fromkeys(
        offer.finding
        for offer in profile.offers
        # An offer to undo a merge follows from a decision.
        if offer.change.name == profile.target and offer.change.merge_labels is not False
    )
    return TargetDoubts(version, profile.target, tuple(findings)) if findings else None
