"""Collects the audit chain's anchors: copies of its head in signed releases, backups and files."""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from jobs import signing
from jobs.audit_chain import GENESIS, HEAD_ID
from jobs.messages.audit import AuditAnchor, anchors_in
from jobs.messages.release import SignedRelease
from jobs.models import AuditHead, ReleaseRecord


@dataclass(frozen=True)
class Anchor:
    """A row in the chain, as a copy outside the chain names it."""

    number: int
    hash: str
    source: str


class ReleaseChanged(ValueError):
    """A stored release is not the one that was signed."""


def current_anchor() -> AuditAnchor:
    """Return the number and the last row's hash, according to the head."""
    head = AuditHead.objects.filter(pk=HEAD_ID).first()
    return AuditAnchor(number=head.number, hash=head.hash) if head else AuditAnchor(number=0, hash=GENESIS)


def read_anchors(text: str, source: str) -> list[Anchor]:
    """Return the anchors in a printed file, a backup's manifest, or the lines of a log."""
    return [Anchor(anchor.number, anchor.hash, source) for anchor in anchors_in(text)]


def newest_release_id() -> int:
    """Return the newest release's id; 0 if there is none."""
    return ReleaseRecord.objects.order_by("-pk").values_list("pk", flat=True).first() or 0


def anchors_of_releases(*, after: int) -> Iterator[Anchor]:
    """Yield the anchors in the releases whose ids are greater than `after`.

    Raises:
        ReleaseChanged: a release does not match its signature. The sentence names it.
    """
    records = ReleaseRecord.objects.filter(pk__gt=after).select_related("endpoint__model").order_by("pk")
    known = signing.known_keys() if records.exists() else set()
    for record in records.iterator(chunk_size=500):
        source = f"release {record.generation} of {record.endpoint.model.name}"
        try:
            signed = SignedRelease.model_validate(record.body)
        except ValidationError as error:
            raise ReleaseChanged(f"The stored {source} is not readable.") from error
        # A release that was signed with a key that is gone proves less, but may still contradict.
        changed = signed.key in known and not signing.is_signed(signed)
        if changed or signed.release.generation != record.generation:
            raise ReleaseChanged(f"The stored {source} is not the one that was signed.")
        if signed.release.audit is not None:
            yield Anchor(signed.release.audit.number, signed.release.audit.hash, source)
