"""Maps the positions in a version's vector input to dataset columns and their encodings."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from jobs.models import ModelVersion
from jobs.queries.registry import versions
from jobs.spec.data.profile import Profile
from jobs.spec.signature import Signature


class Position(NamedTuple):
    """One position: a numeric column, a one-hot word from a text column, or an item in an array column."""

    column: str
    word: str | None = None
    item: int | None = None

    @property
    def name(self) -> str:
        """Return the label for pages."""
        if self.word is not None:
            return f"{self.column} = {self.word}"
        return self.column if self.item is None else f"{self.column}_{self.item}"

    def value_in(self, row: dict[str, Any]) -> float | None:
        """Return the input value from a dataset row. None if it is missing or not a number."""
        value = row.get(self.column)
        if self.word is not None:
            return None if value is None else float(value == self.word)
        if self.item is not None:
            value = value[self.item] if isinstance(value, list) and self.item < len(value) else None
        # The addition converts a boolean to 0 or 1.
        return value + 0 if isinstance(value, int | float) else None


def vector_positions(version: ModelVersion) -> list[Position]:
    """Return the positions in the version's only vector input, in order; none if they are unknown.

    They are unknown for uploaded files, images and versions that take columns by name, and if the experiment
    uses a feature that is not a feature in the data set's profile.
    """
    profile = versions.dataset_profile(version)
    if profile is None or profile.kind != "vector" or not version.signature:
        return []
    signature = Signature.model_validate(version.signature)
    # The columns are sent by name, and the numbers behind them are of no interest.
    if signature.columns:
        return []
    inputs = signature.inputs
    chosen = _chosen_positions(version, profile)
    return chosen if len(inputs) == 1 and inputs[0].shape == (len(chosen),) else []


def _chosen_positions(version: ModelVersion, profile: Profile) -> list[Position]:
    """Return the positions that the experiment's chosen features fill."""
    positions = dict(_positions_by_feature(profile))
    revision = version.source_job.revision if version.source_job else None
    data = revision.spec.data if revision else None
    names = profile.features
    if data is not None and data.features is not None:
        names = data.features
    elif data is not None and data.target not in (None, profile.target):
        # Then the profile's target is a feature, and the profile does not describe its encoding.
        return []
    if any(name not in positions for name in names):
        return []
    return [position for name in names for position in positions[name]]


def _positions_by_feature(profile: Profile) -> Iterator[tuple[str, list[Position]]]:
    """Yield each feature with its positions. Older profiles list only the features, not the inputs."""
    remaining = list(profile.inputs or profile.features)
    for feature in profile.features:
        positions = []
        # A numeric column is one input of its own name, a text column one input `name=word` per word, and an
        # array column `name_0`, `name_1`, ….
        if remaining[:1] == [feature]:
            positions.append(Position(remaining.pop(0)))
        else:
            while remaining and remaining[0].startswith(f"{feature}="):
                positions.append(Position(feature, word=remaining.pop(0).removeprefix(f"{feature}=")))
            while remaining and remaining[0] == f"{feature}_{len(positions)}":
                positions.append(Position(feature, item=len(positions)))
                remaining.pop(0)
        yield feature, positions
