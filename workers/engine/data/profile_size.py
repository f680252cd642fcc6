"""Makes the description small enough to be stored if a table has many columns."""

import json
from collections.abc import Iterator
from typing import Any

from jobs.spec.data.profile import Profile
from workers.engine.errors import BadData

MAX_PROFILE_BYTES = 3 * 2**20
"""The profile is part of the task's result, and an event has at most 4 MiB."""
DRAWN_COLUMNS = 500
"""The columns that keep their histogram and their values in a description that would be too large."""
FEW_ROWS = 5


def stored(profile: Profile) -> dict[str, Any]:
    """Return a profile as JSON, without some parts if the whole would be too large.

    Left out are, in this order: fields that have their default, all but a few rows of the preview, the
    histograms and values for the columns after the first, and the preview.

    Raises:
        BadData: it is too large without them.
    """
    size = 0
    for body in _smaller_and_smaller(profile):
        size = len(json.dumps(body))
        if size <= MAX_PROFILE_BYTES:
            return body
    raise BadData(
        f"the description of its {len(profile.columns):,} columns has {size:,} bytes; at most "
        f"{MAX_PROFILE_BYTES:,} are stored. Upload fewer columns, or arrays instead of single columns"
    )


def _smaller_and_smaller(profile: Profile) -> Iterator[dict[str, Any]]:
    yield profile.model_dump(mode="json")
    yield _without_defaults(profile)
    few = profile.model_copy(update={"preview": profile.preview[:FEW_ROWS]})
    yield _without_defaults(few)
    plain = few.model_copy(
        update={
            "columns": (
                *profile.columns[:DRAWN_COLUMNS],
                *(
                    column.model_copy(update={"histogram": (), "values": ()})
                    for column in profile.columns[DRAWN_COLUMNS:]
                ),
            )
        }
    )
    yield _without_defaults(plain)
    yield _without_defaults(plain.model_copy(update={"preview": ()}))


def _without_defaults(profile: Profile) -> dict[str, Any]:
    return profile.model_dump(mode="json", exclude_defaults=True)
