"""Defines the domain's exceptions: an error code, an HTTP status and a message for users."""

from collections.abc import Sequence

from jobs.answers.storage.deletions import ReferrerOut
from jobs.spec.problems import Problem


class TrainyardError(Exception):
    """Base class. `code` is stable and meant for programs, `message` for users."""

    code = "error"
    status = 400

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code


class NotFound(TrainyardError):
    """The object does not exist, or the user may not see it."""

    code, status = "not_found", 404


class Forbidden(TrainyardError):
    """The user may see the object, but the role, token scope or four-eyes rule forbids the action."""

    code, status = "forbidden", 403


class TooManyAttempts(TrainyardError):
    """Passwords or codes were guessed too often; the next attempt is allowed after `retry_after` seconds."""

    code, status = "too_many_attempts", 429

    def __init__(self, *, retry_after: int) -> None:
        unit = "second" if retry_after == 1 else "seconds"
        super().__init__(f"There were too many failed attempts. Try again in {retry_after} {unit}.")
        self.retry_after = retry_after


class Conflict(TrainyardError):
    """The action conflicts with existing data: a name is taken, or the object is still referenced."""

    code, status = "conflict", 409


class InUse(Conflict):
    """The object cannot be deleted; `referrers` name what refers to it."""

    code = "in_use"

    def __init__(self, label: str, referrers: Sequence[ReferrerOut]) -> None:
        named = "; ".join(f"{referrer.label} {referrer.why}" for referrer in referrers[:3])
        more = f"; and {len(referrers) - 3} more" if len(referrers) > 3 else ""
        super().__init__(f"{label} cannot be deleted: {named}{more}.")
        self.referrers = tuple(referrers)


class QuotaReached(Conflict):
    """The project has reached a quota; the message names the quota, the use and a remedy."""

    code = "quota_reached"


class DiskFull(TrainyardError):
    """The server's disk has no room; the message names the room that is needed."""

    code, status = "disk_full", 507


class StoreUnavailable(TrainyardError, OSError):
    """The artifact store does not answer, or sends another content than the one it stored."""

    code, status = "store_unavailable", 503


class DatabaseReplaced(TrainyardError):
    """The database is being restored or moved, and no part may start."""

    code, status = "database_replaced", 503


class ForeignInstallation(TrainyardError):
    """A part belongs to another installation than its database, and must not start."""

    code, status = "foreign_installation", 500


class StaleState(Conflict):
    """The state does not allow the action, possibly because of a concurrent change."""

    code = "stale_state"


class StaleFence(StaleState):
    """A worker sent a write for an attempt that it no longer owns; nothing was changed."""

    code = "stale_fence"


class GatesOpen(Conflict):
    """A gate was not evaluated; the approver must accept it by name."""

    code = "gates_open"


class BadInput(TrainyardError):
    """The input is invalid; `problems` contain JSON pointers into the request body."""

    code, status = "invalid", 422

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class BadSpec(BadInput):
    """An experiment spec is invalid."""

    code = "bad_spec"


class NotOwned(TrainyardError):
    """The artifact store belongs to another installation, so that it is only read."""

    code, status = "store_not_owned", 409


class FetchFailed(TrainyardError):
    """Data at an address cannot be fetched. The message contains nothing that the source sent."""

    code, status = "fetch_failed", 422
