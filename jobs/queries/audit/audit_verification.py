"""Verifies the audit chain, and finds out how it is broken."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from jobs import audit_chain
from jobs.audit_chain import GENESIS, HEAD_ID
from jobs.models import AuditEvent, AuditHead, WaitingAuditEvent
from jobs.queries.audit import audit_anchors
from jobs.queries.audit.audit_anchors import Anchor, ReleaseChanged
from jobs.spec.base import Frozen

SEAL = "audit.seal"
"""The action in a row that begins a new chain after rows that do not verify."""

CHUNK = 2000


class ChainState(StrEnum):
    """How the chain was found."""

    VALID = "valid"
    CHANGED = "changed"
    GAP = "gap"
    TRUNCATED = "truncated"
    HEAD_CHANGED = "head_changed"
    OTHER_KEY = "other_key"
    RELEASE_CHANGED = "release_changed"
    UNVERIFIED = "unverified"


@dataclass(frozen=True)
class Verification:
    """A verification's result."""

    state: ChainState
    message: str
    """A sentence for people."""

    rows: int
    """How many rows were read."""

    row: int | None = None
    """The id of the first wrong row or of the row after a gap; the next id if the last rows are missing."""

    missing: tuple[int, int] | None = None
    """The first and the last number that are missing."""

    notes: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the chain is valid."""
        return self.state == ChainState.VALID

    @property
    def label(self) -> str:
        """The state in words."""
        return self.state.replace("_", " ")


class Sealed(Frozen):
    """A seal's detail: the rows before it, and their result at that time."""

    found: ChainState
    message: str
    row: int | None = None
    rows: int
    digest: str
    releases: int = 0
    accepted: bool
    reason: str


def verify_chain(anchors: Iterable[Anchor] = ()) -> Verification:
    """Verify the chain from its beginning, against its head, all signed releases and `anchors`.

    The first problem is returned. Rows may be appended meanwhile.
    """
    verifier = _Verifier(anchors)
    try:
        verifier.read_anchors_of_releases()
    except ReleaseChanged as error:
        # Wrong rows are reported first, because they explain more than a release does.
        verification = verifier.verify()
        if not verification.holds:
            return verification
        return replace(verification, state=ChainState.RELEASE_CHANGED, message=str(error))
    return verifier.verify()


def digest_of_all_rows() -> audit_chain.Digest:
    """Compute one digest of all rows, by ascending number."""
    digest = audit_chain.Digest()
    for event in AuditEvent.objects.order_by("number").iterator(chunk_size=CHUNK):
        digest.add(event)
    return digest


class _Broken(Exception):
    """Ends the verification with its result."""

    def __init__(self, result: Verification) -> None:
        super().__init__(result.message)
        self.result = result


class _Verifier:
    """Reads the rows in order and compares each with the one before, and the last with the head."""

    def __init__(self, anchors: Iterable[Anchor]) -> None:
        self._seal = AuditEvent.objects.filter(action=SEAL).order_by("-number").first()
        self._sealed = Sealed.model_validate(self._seal.detail) if self._seal else None
        self._anchors: dict[int, list[Anchor]] = defaultdict(list)
        for anchor in anchors:
            # The anchor of a chain without rows has the number 0.
            if anchor.number:
                self._anchors[anchor.number].append(anchor)
        self._digest = audit_chain.Digest()
        self._number, self._hash, self._last_id, self._rows = 0, GENESIS, 0, 0
        self._with_other_key = self._has_other_key()

    def read_anchors_of_releases(self) -> None:
        """Add the releases' anchors since the seal.

        Raises:
            ReleaseChanged: a release does not match its signature.
        """
        for anchor in audit_anchors.anchors_of_releases(after=self._sealed.releases if self._sealed else 0):
            self._anchors[anchor.number].append(anchor)

    def verify(self) -> Verification:
        """Return the result."""
        try:
            for event in self._events():
                self._check(event)
            self._check_end()
        except _Broken as broken:
            return broken.result
        return self._valid()

    def _has_other_key(self) -> bool:
        """Return whether the secret key was replaced: the head names another one, and the rows prove it."""
        head = _read_head()
        if head is None or head.key == audit_chain.key_id():
            return False
        first = self._seal or AuditEvent.objects.order_by("number").first()
        return first is not None and first.hash != audit_chain.row_hash(first)

    def _events(self) -> Iterator[AuditEvent]:
        while True:
            newer = AuditEvent.objects.filter(number__gt=self._number).order_by("number")
            yield from newer.iterator(chunk_size=CHUNK)
            self._head = _read_head()
            # The head may already name rows that were appended after the last row was read.
            if not AuditEvent.objects.filter(number__gt=self._number).exists():
                return

    def _check(self, event: AuditEvent) -> None:
        if self._seal is None or event.number > self._seal.number:
            self._check_link(event)
        elif event.number == self._seal.number:
            self._check_seal(event)
        else:
            self._digest.add(event)
        for anchor in self._anchors.pop(event.number, ()):
            if anchor.hash != event.hash:
                self._break(
                    ChainState.CHANGED,
                    f"Row {event.pk} is not the one that {anchor.source} names: it was replaced.",
                    row=event.pk,
                )
        self._number, self._hash, self._last_id = event.number, event.hash, event.pk
        self._rows += 1

    def _check_link(self, event: AuditEvent) -> None:
        self._check_content(event)
        first = self._number + 1
        if event.number != first:
            self._break_gap(event, first, event.number - 1)
        if event.previous_hash != self._hash:
            self._break(
                ChainState.CHANGED,
                f"Row {event.pk} was changed: it does not follow the row before it.",
                row=event.pk,
            )

    def _check_seal(self, event: AuditEvent) -> None:
        self._check_content(event)
        sealed = Sealed.model_validate(event.detail)
        if (self._digest.rows, self._digest.hex()) != (sealed.rows, sealed.digest):
            self._break(
                ChainState.CHANGED,
                f"A row before row {event.pk} was changed, deleted or added after that row had sealed them. "
                f"It sealed {sealed.rows} rows, and there are {self._digest.rows}.",
                row=event.pk,
            )

    def _check_content(self, event: AuditEvent) -> None:
        if not self._with_other_key and event.hash != audit_chain.row_hash(event):
            self._break(
                ChainState.CHANGED,
                f"Row {event.pk} was changed: it does not match its hash.",
                row=event.pk,
            )

    def _check_end(self) -> None:
        # In this order: each reason explains more than the ones after it, which would also be true.
        self._check_last_rows()
        head = self._head
        if self._with_other_key:
            self._break(
                ChainState.OTHER_KEY,
                "The head of the audit chain was made with another key than the present secret.key. "
                f"No row is missing between the {self._rows} rows, but their contents cannot be verified.",
            )
        if head is None and self._rows:
            self._break(
                ChainState.HEAD_CHANGED, "The head of the audit chain was deleted. Last rows may be missing."
            )
        if head is not None and not audit_chain.is_authentic(head):
            self._break(
                ChainState.HEAD_CHANGED,
                f"The head of the audit chain was changed. The {self._rows} rows in the database are valid, "
                "but rows after them may be missing.",
            )
        if head is not None and (head.number, head.hash) != (self._number, self._hash):
            self._break(
                ChainState.HEAD_CHANGED,
                f"The head of the audit chain was replaced by another one, of row number {head.number}. "
                f"The last row has the number {self._number}.",
            )

    def _check_last_rows(self) -> None:
        """Compare the last row with the highest number that the head or an anchor names."""
        named = [(anchor.number, anchor.source) for anchors in self._anchors.values() for anchor in anchors]
        if self._head is not None and (self._with_other_key or audit_chain.is_authentic(self._head)):
            named.append((self._head.number, "the head"))
        number, source = max(named, default=(0, ""))
        if number > self._number:
            self._break(
                ChainState.TRUNCATED,
                f"The last rows are missing: {source} names the row with number {number}, and the last row "
                f"in the database has number {self._number}.",
                row=self._last_id + 1,
                missing=(self._number + 1, number),
            )
        # All others were found, except rows that a seal has accepted as missing.
        for number in sorted(self._anchors):
            self._break(
                ChainState.GAP,
                f"The row with number {number}, which {self._anchors[number][0].source} names, is missing.",
                missing=(number, number),
            )

    def _break_gap(self, event: AuditEvent, first: int, last: int) -> None:
        numbers = f"the number {first}" if first == last else f"the numbers {first} to {last}"
        self._break(
            ChainState.GAP,
            f"Rows before row {event.pk} are missing, with {numbers}.",
            row=event.pk,
            missing=(first, last),
        )

    def _break(
        self,
        state: ChainState,
        message: str,
        *,
        row: int | None = None,
        missing: tuple[int, int] | None = None,
    ) -> None:
        raise _Broken(Verification(state, message, self._rows, row=row, missing=missing))

    def _valid(self) -> Verification:
        message = f"The audit chain is valid: {self._rows} rows."
        waiting = _describe_waiting()
        if self._seal is None or self._sealed is None:
            return Verification(ChainState.VALID, message, self._rows, notes=waiting)
        when = f"{self._seal.time:%Y-%m-%d %H:%M} UTC"
        note = (
            f"Row {self._seal.pk} sealed the {self._sealed.rows} rows before it on {when} "
            f"({self._sealed.reason}). Before, the result was: {self._sealed.message}"
        )
        if self._sealed.accepted:
            return Verification(ChainState.VALID, message, self._rows, notes=(note, *waiting))
        message = f"The audit chain was broken before the upgrade on {when}: {self._sealed.message}"
        return Verification(ChainState.UNVERIFIED, message, self._rows, row=self._sealed.row)


def _describe_waiting() -> tuple[str, ...]:
    """Return a note about rows that are not in the chain yet."""
    count = WaitingAuditEvent.objects.count()
    return (f"{count} more rows, from workers without the key, wait for the scheduler.",) if count else ()


def _read_head() -> AuditHead | None:
    return AuditHead.objects.filter(pk=HEAD_ID).first()
