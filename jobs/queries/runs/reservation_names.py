"""Names the holders of reservations in reasons to wait, for the readers who may see them.

A reason is stored once for all readers. It has the number of the reservation in place of a name.
"""

import re
from collections.abc import Mapping

from jobs.models import Reservation, User
from jobs.placement.sentences import for_others
from jobs.queries.runs.reservations import Readers

_NUMBER = 0
_FOR_OTHERS = re.compile(re.escape(for_others(_NUMBER)).replace(str(_NUMBER), r"(\d{1,18})"))


def name_holders[K](reasons: Mapping[K, str], reader: User) -> dict[K, str]:
    """Return reasons to wait with the names of holders of reservations whom the reader may see.

    Reasons without a reservation cost no statement.
    """
    numbers = {int(found[1]) for reason in set(reasons.values()) for found in _FOR_OTHERS.finditer(reason)}
    if not numbers:
        return dict(reasons)
    readers = Readers.of(reader)
    rows = Reservation.objects.filter(pk__in=numbers).select_related("person", "project")
    names = {row.pk: f"for {row.holder} (reservation {row.pk})" for row in rows if readers.may_see(row)}

    def name(found: re.Match[str]) -> str:
        return names.get(int(found[1]), found[0])

    return {key: _FOR_OTHERS.sub(name, reason) for key, reason in reasons.items()}
