"""One endpoint: brings what runs in line with the newest release, and keeps the incumbent until then."""

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

from jobs.contracts.release import Release, ReleasedVersion, ReplicaReport, SignedRelease
from workers.serving.errors import BadRequest, NotFound, Unavailable
from workers.serving.protocols.target import Target
from workers.serving.protocols.tfs_views import VersionStatus
from workers.serving.releases.state import EndpointState
from workers.serving.releases.trust import ReleaseRefused
from workers.serving.versions.version import LoadedVersion

logger = logging.getLogger("trainyard.serving")


class Picked(NamedTuple):
    """The version that answers a request, and as what."""

    version: LoadedVersion
    variant: str


class Endpoint:
    """The versions of one model.

    The availability-preserving order: a new production version is loaded and warm before one reference
    flips to it; then the old one answers what it was asked and, if no longer named, ends.
    """

    def __init__(
        self,
        model: str,
        *,
        load: Callable[[str, ReleasedVersion], LoadedVersion],
        changed: Callable[[], None],
        drain_seconds: float,
    ) -> None:
        self.model = model
        self.serving: SignedRelease | None = None
        self.newest: SignedRelease | None = None
        self.error: str | None = None
        self._load, self._changed, self._drain_seconds = load, changed, drain_seconds
        self._versions: dict[tuple[int, str], LoadedVersion] = {}
        self._retiring: dict[LoadedVersion, asyncio.Task[None]] = {}
        self._converging: asyncio.Task[None] | None = None

    def adopt(self, signed: SignedRelease) -> None:
        """Start to bring a verified release into effect; a newer one may come before that is done.

        Raises:
            ReleaseRefused: its generation is older than one we have, or the same with other content.
        """
        if self.newest is not None and signed.release.generation <= self.newest.release.generation:
            if signed.release == self.newest.release:
                return
            raise ReleaseRefused(
                f"generation {signed.release.generation} is not newer than {self.newest.release.generation}"
            )
        self.newest, self.error = signed, None
        self._restart(signed)

    def resume(self, state: EndpointState) -> None:
        """Take up what a state file held: what answered first, then what was on its way."""
        if state.serving is not None:
            self.adopt(state.serving)
        if state.newest.release.generation > (self.generation_known or -1):
            self.newest = state.newest
            self._restart(*(signed for signed in (state.serving, state.newest) if signed))

    @property
    def generation_known(self) -> int | None:
        """The newest verified generation, served or not."""
        return self.newest.release.generation if self.newest else None

    def state(self) -> EndpointState | None:
        """Return what the state file shall hold."""
        return EndpointState(serving=self.serving, newest=self.newest) if self.newest else None

    def report(self, replica: str) -> ReplicaReport:
        """Return what the dashboard shall know."""
        serving = self.serving.release.generation if self.serving else 0
        loading = self.generation_known if self.generation_known != serving else None
        failed = next((version.error for version in self._versions.values() if version.error), None)
        return ReplicaReport(
            replica=replica,
            model=self.model,
            generation=serving,
            loading=loading,
            versions={str(status.number): status.state for status in self.statuses()},
            error=(self.error or failed or "")[:500] or None,
        )

    @property
    def is_ready(self) -> bool:
        """It answers, or was told to be down."""
        if self.newest is None or self.newest.release.production is None:
            return True
        return self.serving is not None

    def needed_digests(self) -> set[str]:
        """Digests that the served and the newest release name."""
        signed = (self.serving, self.newest)
        return {version.digest for one in signed if one for version in one.release.versions}

    def statuses(self) -> list[VersionStatus]:
        """Return the state of each version we hold, retiring ones too."""
        return [version.status for version in (*self._versions.values(), *self._retiring)]

    def available(self) -> list[LoadedVersion]:
        """Return the versions that the served release names and that have been warm."""
        if self.serving is None:
            return []
        named = (self._versions.get(_key(version)) for version in self.serving.release.versions)
        return [version for version in named if version is not None and version.warm.is_set()]

    def pick(self, target: Target) -> Picked:
        """Return the version that answers a request for `target`.

        Raises:
            NotFound: no such version, or none that is approved: the answers are the same.
            BadRequest: no such label.
            Unavailable: approved, but not ready yet.
        """
        release = self._release()
        if release is None:
            raise NotFound(not_found(target))
        number, variant = _number(release, target)
        approved = next((version for version in release.versions if version.number == number), None)
        if approved is None:
            raise NotFound(not_found(target))
        version = self._versions.get(_key(approved))
        if version is None or not version.warm.is_set() or self.serving is None:
            raise Unavailable(f"Version {number} of model {self.model} is loading", retry_after=1)
        return Picked(version, variant)

    def _release(self) -> Release | None:
        current = self.serving or self.newest
        return current.release if current else None

    def _restart(self, *steps: SignedRelease) -> None:
        if self._converging is not None:
            self._converging.cancel()  # its children load on: only the waiting for them ends
        self._converging = asyncio.create_task(self._converge(steps))
        self._changed()

    async def _converge(self, steps: tuple[SignedRelease, ...]) -> None:
        for signed in steps:
            if await self._production_warm(signed.release, patient=signed is steps[-1]):
                self._flip(signed)
            for (
                approved
            ) in signed.release.versions:  # one after the other: loads shall not starve the answers
                await self._ensure(approved).tried.wait()

    async def _production_warm(self, release: Release, *, patient: bool) -> bool:
        """Wait for the production version; only for one try if there is a newer release behind it."""
        if release.production is None:
            return True
        approved = next(version for version in release.versions if version.number == release.production)
        version = self._ensure(approved)
        await (version.warm if patient else version.tried).wait()
        return version.warm.is_set()

    def _flip(self, signed: SignedRelease) -> None:
        """Let the release answer. Nothing awaits in here: no request sees half of it."""
        self.serving = signed
        logger.info("%s serves generation %d, version %s",
                    self.model, signed.release.generation, signed.release.production)  # fmt: skip
        needed = {_key(version) for version in signed.release.versions}
        if self.newest is not None:
            needed |= {_key(version) for version in self.newest.release.versions}
        for key in self._versions.keys() - needed:
            self._retire(self._versions.pop(key))
        self._changed()

    def _ensure(self, approved: ReleasedVersion) -> LoadedVersion:
        version = self._versions.get(_key(approved))
        if version is None:
            version = self._versions[_key(approved)] = self._load(self.model, approved)
        return version

    def _retire(self, version: LoadedVersion) -> None:
        async def unload() -> None:
            await version.unload(self._drain_seconds)
            del self._retiring[version]

        self._retiring[version] = asyncio.create_task(unload())

    async def close(self) -> None:
        """End all children, after what they were asked."""
        if self._converging is not None:
            self._converging.cancel()
        for key in list(self._versions):
            self._retire(self._versions.pop(key))
        await asyncio.gather(*self._retiring.values())


def not_found(target: Target) -> str:
    """Return TensorFlow Serving's words for a model or version that does not exist."""
    if target.version is None:
        return f"Servable not found for request: Latest({target.model})"
    return f"Servable not found for request: Specific({target.model}, {target.version})"


def _number(release: Release, target: Target) -> tuple[int | None, str]:
    """Return the version's number a target means, and the variant's name."""
    if target.version is not None:
        role = "standby" if target.version in release.standby else "version"
        return target.version, "production" if target.version == release.production else role
    if target.label in (None, "production"):
        return release.production, "production"
    number = release.labels.get(target.label)
    if number is None:
        raise BadRequest(f"Unrecognized servable version label: {target.label}")
    return number, target.label


def _key(version: ReleasedVersion) -> tuple[int, str]:
    return version.number, version.digest
