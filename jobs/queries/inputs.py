"""Which column of the data stands at which position of a version's vector input, and how it is encoded."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from jobs.contracts.profile import Profile
from jobs.contracts.signature import Signature
from jobs.models import ModelVersion
from jobs.queries import versions


class Position(NamedTuple):
    """One position: a column of numbers, one word of a column of texts, or one item of a column of arrays."""

    column: str
    word: str | None = None
    item: int | None = None

    @property
    def name(self) -> str:
        """Return what a page calls it."""
        if self.word is not None:
            return f"{self.column} = {self.word}"
        return self.column if self.item is None else f"{self.column}_{self.item}"

    def of(self, row: dict[str, Any]) -> float | None:
        """Return what stands here for a row as the data set holds it, None if that cannot be told."""
        value = row.get(self.column)
        if self.word is not None:
            return None if value is None else float(value == self.word)
        if self.item is not None:
            value = value[self.item] if isinstance(value, list) and self.item < len(value) else None
        return value + 0 if isinstance(value, int | float) else None  # a truth value becomes 0 or 1


def positions(version: ModelVersion) -> list[Position]:
    """Return the positions of the version's one vector input in order; none where they are not known.

    They are not known of uploaded files and images, nor where the experiment chose a column as
    a feature that the data set's profile does not count among the features.
    """
    profile = versions.profile(version)
    if profile is None or profile.kind != "vector" or not version.signature:
        return []
    inputs = Signature.model_validate(version.signature).inputs
    found = _chosen(version, profile)
    return found if len(inputs) == 1 and inputs[0].shape == (len(found),) else []


def _chosen(version: ModelVersion, profile: Profile) -> list[Position]:
    """Return the positions under the roles that the experiment gave the columns."""
    known = dict(_by_feature(profile))
    revision = version.source_job.revision if version.source_job else None
    data = revision.spec.data if revision else None
    wanted = profile.features
    if data is not None and data.features is not None:
        wanted = data.features
    elif data is not None and data.target not in (None, profile.target):
        # The old target is a feature then, and the profile does not say how it is encoded.
        return []
    if any(name not in known for name in wanted):
        return []
    return [position for name in wanted for position in known[name]]


def _by_feature(profile: Profile) -> Iterator[tuple[str, list[Position]]]:
    """Cut the profile's list of inputs into each feature's own; older profiles list only features."""
    left = list(profile.inputs or profile.features)
    for feature in profile.features:
        found = []
        if left[:1] == [feature]:
            found.append(Position(left.pop(0)))
        else:
            while left and left[0].startswith(f"{feature}="):
                found.append(Position(feature, word=left.pop(0).removeprefix(f"{feature}=")))
            while left and left[0] == f"{feature}_{len(found)}":
                found.append(Position(feature, item=len(found)))
                left.pop(0)
        yield feature, found
