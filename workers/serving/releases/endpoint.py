"""Runs one endpoint: converges to the newest release while the current production version keeps serving."""

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

from jobs.messages.release import Release, ReleasedVersion, ReplicaReport, SignedRelease
from workers.model_process.errors import BadRequest, NotFound, Unavailable
from workers.serving.protocols.target import Target, not_found
from workers.serving.releases.state import EndpointState
from workers.serving.releases.verification import ReleaseRefused
from workers.serving.version_status import VersionStatus
from workers.serving.versions.version import LoadedVersion

logger = logging.getLogger("trainyard.serving")


class PickedVersion(NamedTuple):
    """The version that answers a request, and its variant name."""

    version: LoadedVersion
    variant: str


class Endpoint:
    """One model's versions.

    A rollout never interrupts serving: a new production version is loaded and warmed up before one reference
    is switched to it. Then the old one is drained and, unless the release names it, unloaded.

    Args:
        model: the model's name.
        load: begins to load a released version.
        changed: called after each change.
        drain_seconds: how long a version that is unloaded may answer its queue.
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
        # The release that served when the server ended, until one serves again.
        self._served_before: SignedRelease | None = None
        self._load, self._changed, self._drain_seconds = load, changed, drain_seconds
        # By number and identity, so that a loaded version never answers for another file or other code of the
        # same number.
        self._versions: dict[tuple[int, str], LoadedVersion] = {}
        self._unloading: dict[LoadedVersion, asyncio.Task[None]] = {}
        self._converging: asyncio.Task[None] | None = None

    def apply(self, signed: SignedRelease) -> None:
        """Start a verified release's rollout. A newer one may replace it before it is complete.

        Raises:
            ReleaseRefused: its generation is older than the newest one, or equal with different content.
        """
        if self.newest is not None and signed.release.generation <= self.newest.release.generation:
            if signed.release == self.newest.release:
                return
            raise ReleaseRefused(
                f"generation {signed.release.generation} is not newer than {self.newest.release.generation}"
            )
        self.newest, self.error = signed, None
        self._start_converging(signed)

    def resume(self, state: EndpointState) -> None:
        """Apply a saved state: first the release that was serving, then the newest one."""
        self.newest, self._served_before = state.newest, state.serving
        before = state.serving
        if before is not None and before.release.generation < state.newest.release.generation:
            self._start_converging(before, state.newest)
        else:
            self._start_converging(state.newest)

    @property
    def generation_known(self) -> int | None:
        """The newest verified generation, whether it serves yet or not."""
        return self.newest.release.generation if self.newest else None

    def state(self) -> EndpointState | None:
        """Return the state to save.

        Until a release serves again after a restart, the one that served before stays in it: the server may
        be killed now, and the newest release may be one that cannot be loaded.
        """
        serving = self.serving or self._served_before
        return EndpointState(serving=serving, newest=self.newest) if self.newest else None

    def report(self, replica: str) -> ReplicaReport:
        """Return the report for the dashboard."""
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
        """Whether its production version answers now, or it has none."""
        if self.newest is None or self.newest.release.production is None:
            return True
        if self.serving is None:
            return False
        production = self.serving.release.production
        return production is None or any(
            version.approved.number == production and version.state == "AVAILABLE"
            for version in self.available()
        )

    def needed_digests(self) -> set[str]:
        """Return the digests named by the saved releases."""
        releases = (self.serving or self._served_before, self.newest)
        versions = (version for signed in releases if signed for version in signed.release.versions)
        return {digest for version in versions for digest, _ in version.files}

    def statuses(self) -> list[VersionStatus]:
        """Return each version's state, including those that are being unloaded.

        A version that is loaded again before it was unloaded has its new process's state.
        """
        by_number = {
            version.approved.number: version for version in (*self._unloading, *self._versions.values())
        }
        return [version.status for version in by_number.values()]

    def available(self) -> list[LoadedVersion]:
        """Return the versions in the serving release that have been warmed up."""
        if self.serving is None:
            return []
        named = (self._versions.get(_key(version)) for version in self.serving.release.versions)
        return [version for version in named if version is not None and version.warm.is_set()]

    def pick(self, target: Target) -> PickedVersion:
        """Return the version that answers a request for `target`.

        Raises:
            NotFound: the version does not exist or is not approved; the message is the same.
            BadRequest: the label does not exist.
            Unavailable: it is approved, but not ready yet.
        """
        # Until a first release serves, the newest one decides between "loading" and "not found".
        current = self.serving or self.newest
        if current is None:
            raise NotFound(not_found(target))
        release = current.release
        if not release.versions:  # taken down: also a label is answered as if the model did not exist
            raise NotFound(not_found(target))
        number, variant = _number(release, target)
        approved = next((version for version in release.versions if version.number == number), None)
        if approved is None:
            raise NotFound(not_found(target))
        version = self._versions.get(_key(approved))
        if version is None or not version.warm.is_set() or self.serving is None:
            raise Unavailable(f"Version {number} of model {self.model} is loading", retry_after=1)
        return PickedVersion(version, variant)

    def _start_converging(self, *steps: SignedRelease) -> None:
        # Cancelling only stops the wait: the children continue to load.
        if self._converging is not None:
            self._converging.cancel()
        self._converging = asyncio.create_task(self._converge(steps))
        self._changed()

    async def _converge(self, steps: tuple[SignedRelease, ...]) -> None:
        """Load the versions of these releases in order, and switch to each release that can serve."""
        for signed in steps:
            # If the file of the saved serving release is gone, it must not delay the newest release.
            if await self._wait_for_production(signed.release, patient=signed is steps[-1]):
                self._switch_to(signed)
            # One at a time, so that loads leave CPU for requests.
            for approved in signed.release.versions:
                await self._get_or_load(approved).load_attempted.wait()

    async def _wait_for_production(self, release: Release, *, patient: bool) -> bool:
        """Wait for the production version, or for one load of it unless `patient`; return if it is warm."""
        if release.production is None:
            return True
        approved = next(version for version in release.versions if version.number == release.production)
        version = self._get_or_load(approved)
        await (version.warm if patient else version.load_attempted).wait()
        return version.warm.is_set()

    def _switch_to(self, signed: SignedRelease) -> None:
        """Serve the release from now on."""
        # No await in this function, so that no request sees an intermediate state.
        self.serving = signed
        logger.info("%s serves generation %d, version %s",
                    self.model, signed.release.generation, signed.release.production)  # fmt: skip
        needed = {_key(version) for version in signed.release.versions}
        if self.newest is not None:
            needed |= {_key(version) for version in self.newest.release.versions}
        for key in self._versions.keys() - needed:
            self._unload(self._versions.pop(key))
        self._changed()

    def _get_or_load(self, approved: ReleasedVersion) -> LoadedVersion:
        version = self._versions.get(_key(approved))
        if version is None:
            version = self._versions[_key(approved)] = self._load(self.model, approved)
        # The same file with the same code. A newer release may name the mesh that it needs.
        version.approved = approved
        return version

    def _unload(self, version: LoadedVersion) -> None:
        async def unload() -> None:
            await version.unload(self._drain_seconds)
            del self._unloading[version]

        self._unloading[version] = asyncio.create_task(unload())

    async def close(self) -> None:
        """End all children after their pending requests."""
        if self._converging is not None:
            self._converging.cancel()
        for key in list(self._versions):
            self._unload(self._versions.pop(key))
        await asyncio.gather(*self._unloading.values())


def _number(release: Release, target: Target) -> tuple[int | None, str]:
    """Return the version number that a target addresses, and the variant name."""
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
    return version.number, version.identity
