"""Remembers which tasks with code of users ran here lately, to keep sandboxes ready for the next ones."""

import logging
import math
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from jobs.queries.sandboxes import CodeRules
from workers.supervise.attempt_repository import DatabaseUnavailable
from workers.supervise.pool.standby import StandbyKey

log = logging.getLogger(__name__)

Rules = Callable[[Collection[int]], Awaitable[Mapping[int, CodeRules]]]
"""Returns the rules of projects for their code; those that do not exist any more are missing."""
CHECK_SECONDS = 5.0
"""How often the rules are read while there are recent tasks."""
Kind = tuple[int, bool]
"""A project, and whether its tasks need JAX."""


class _Recent(NamedTuple):
    key: StandbyKey
    at: float


@dataclass
class SandboxDemand:
    """The newest needs of each project that ran code lately.

    Only the newest, so that a change of packages, limits or settings ends the standbys for the old ones.
    """

    rules: Rules
    idle_seconds: float
    _recent: dict[Kind, _Recent] = field(default_factory=dict)
    _known: dict[int, CodeRules] = field(default_factory=dict)
    _checked_at: float = -math.inf
    _failed: bool = False

    def record(self, key: StandbyKey) -> None:
        """Note that a task with code needs this standby."""
        needs = key.sandbox
        # One with a GPU would take memory of the device, and the next task may get another device.
        if needs is None or needs.project is None or needs.gpus is not None:
            return
        kind = (needs.project, key.jax)
        # The newest are last.
        self._recent.pop(kind, None)
        self._recent[kind] = _Recent(key, time.monotonic())

    async def wanted(self, count: int) -> list[StandbyKey]:
        """Return the keys of at most `count` standbys: one of each project, and the rest of the newest."""
        too_old = time.monotonic() - self.idle_seconds
        self._forget(lambda recent: recent.at < too_old)
        await self._check()
        newest = [recent.key for recent in reversed(self._recent.values())]
        return (newest + newest[:1] * count)[:count]

    async def _check(self) -> None:
        """Forget the projects whose rules have changed since their last task."""
        projects = {project for project, _ in self._recent}
        if not projects:
            self._known.clear()
            return
        now = time.monotonic()
        if now - self._checked_at < CHECK_SECONDS and (self._failed or projects <= self._known.keys()):
            return
        self._checked_at, self._failed = now, True
        try:
            rules = await self.rules(projects)
        except DatabaseUnavailable as error:
            log.warning("the rules for code could not be read: %s", error)
            return
        self._failed = False
        self._forget(lambda recent: not self._is_current(recent.key, rules))
        self._known = dict(rules)

    def _is_current(self, key: StandbyKey, rules: Mapping[int, CodeRules]) -> bool:
        needs = key.sandbox
        if needs is None or needs.project is None or (now := rules.get(needs.project)) is None:
            return False
        known = self._known.get(needs.project, now)
        return now == known and (needs.code.minimum, needs.code.network) == (now.minimum, now.network)

    def _forget(self, is_over: Callable[[_Recent], bool]) -> None:
        for kind, recent in list(self._recent.items()):
            if is_over(recent):
                del self._recent[kind]
