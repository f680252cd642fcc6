"""Defines the audit chain's anchor, a copy of its head outside the database, and finds it in text."""

import re
from collections.abc import Iterator

from pydantic import Field

from jobs.spec.base import Frozen

# As JSON, in any layout: it finds anchors in a separate file, in a manifest and in log lines.
_ANCHOR = re.compile(r'\\?"number\\?":\s*(\d{1,18}),\s*\\?"hash\\?":\s*\\?"([0-9a-f]{64})')


class AuditAnchor(Frozen):
    """The last row of the audit chain at some time."""

    number: int = Field(ge=0)
    hash: str = Field(pattern="^[0-9a-f]{64}$")


def anchors_in(text: str) -> Iterator[AuditAnchor]:
    """Yield the anchors that a text contains as JSON."""
    for number, last_hash in _ANCHOR.findall(text):
        yield AuditAnchor(number=int(number), hash=last_hash)
