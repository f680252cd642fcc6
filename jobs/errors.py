"""One exception tree for everything that may be refused: a stable code and a sentence for people."""

from collections.abc import Sequence

from jobs.contracts.problems import Problem


class TrainyardError(Exception):
    """Base of all refusals. `code` is for programs, the message for people, `status` for HTTP."""

    code = "error"
    status = 400

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code


class NotFound(TrainyardError):
    """The thing does not exist, or the asker may not know that it does."""

    code, status = "not_found", 404


class Forbidden(TrainyardError):
    """The asker may see the thing but lacks the role, scope or independence for this."""

    code, status = "forbidden", 403


class Conflict(TrainyardError):
    """The thing stands in the way: a name is taken, something still refers to it."""

    code, status = "conflict", 409


class StaleState(Conflict):
    """Somebody was faster, or the state does not allow this."""

    code = "stale_state"


class StaleFence(StaleState):
    """A worker wrote for an attempt that is no longer its own; nothing was changed."""

    code = "stale_fence"


class GatesOpen(Conflict):
    """A gate that was not evaluated must be accepted by name before approval."""

    code = "gates_open"


class BadInput(TrainyardError):
    """The input does not hold; `problems` say where, as JSON pointers into the sent body."""

    code, status = "invalid", 422

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class BadSpec(BadInput):
    """An experiment spec does not hold."""

    code = "bad_spec"
