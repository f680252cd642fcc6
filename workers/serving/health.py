"""States whether the server learns of releases: for its log, its reports, and `ready`."""

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from workers.model_process.errors import Unavailable
from workers.serving.options import UnreadyWhen
from workers.serving.releases.dashboard import CredentialRefused

logger = logging.getLogger("trainyard.serving")

# A poll that finds nothing new is answered after 25 s.
_LONGEST_POLL = 45.0
# A dashboard that restarts is back before.
_FAILING_SECONDS = 15.0
_LOG_SECONDS = 60.0


class CutOff(NamedTuple):
    """The server learns of no release.

    Attributes:
        seconds: for how long.
        reason: the last error.
        is_refused: whether the dashboard refuses this server, as opposed to no answer.
    """

    seconds: float
    reason: str
    is_refused: bool

    @property
    def since(self) -> datetime:
        """When the dashboard answered for the last time."""
        return datetime.fromtimestamp(time.time() - self.seconds, UTC)

    def __str__(self) -> str:
        since = f"{self.since:%Y-%m-%d %H:%M} UTC"
        return f"cut off since {since}, so newer versions may be released: {self.reason}"


class Health:
    """The findings of the server's loops about the dashboard.

    Args:
        unready_when: when a server that is cut off is not ready.
        callers_problem: why no caller can be answered; None if some can.
    """

    def __init__(self, unready_when: UnreadyWhen, callers_problem: Callable[[], str | None]) -> None:
        self._unready_when, self._callers_problem = unready_when, callers_problem
        self._heard = time.monotonic()
        self._error: Exception | None = None
        self.reports_error: Exception | None = None

    def heard_releases(self) -> None:
        """Note an answer to a poll."""
        self._heard, self._error = time.monotonic(), None

    def missed_releases(self, error: Exception) -> None:
        """Note a poll without an answer."""
        self._error = error

    @property
    def cut_off(self) -> CutOff | None:
        """Whether the server learns of no release."""
        seconds = time.monotonic() - self._heard
        if seconds < (_LONGEST_POLL if self._error is None else _FAILING_SECONDS):
            return None
        reason = "the dashboard does not answer" if self._error is None else str(self._error)
        return CutOff(seconds, reason, isinstance(self._error, CredentialRefused))

    def check(self) -> dict[str, str]:
        """Return the facts that a ready server adds to this state.

        Raises:
            Unavailable: it is not ready.
        """
        if (problem := self._callers_problem()) is not None:
            raise Unavailable(f"no request can be answered: {problem}", retry_after=5)
        notes = {} if self.reports_error is None else {"reports": f"not accepted: {self.reports_error}"}
        cut_off = self.cut_off
        if cut_off is None:
            return notes
        if self._unready_when == "cut-off" or (self._unready_when == "refused" and cut_off.is_refused):
            raise Unavailable(str(cut_off), retry_after=5)
        return notes | {
            "cut_off_since": cut_off.since.isoformat(timespec="seconds"),
            "reason": cut_off.reason,
        }

    async def log_problems(self) -> None:
        """Log each present problem every minute, until cancelled."""
        while True:
            await asyncio.sleep(_LOG_SECONDS)
            if (cut_off := self.cut_off) is not None:
                logger.warning("%s", cut_off)
            if self.reports_error is not None:
                logger.warning("reports are not accepted: %s", self.reports_error)
