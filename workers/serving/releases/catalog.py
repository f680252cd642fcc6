"""Holds all endpoints on this server and saves them to the state file."""

import asyncio
import logging
from collections.abc import Callable, Iterable

from pydantic import ValidationError

from jobs.messages.release import SignedRelease
from workers.model_process.errors import NotFound, Unavailable
from workers.serving.protocols.target import Target, not_found
from workers.serving.releases.endpoint import Endpoint, PickedVersion
from workers.serving.releases.state import EndpointState, State, StateFile
from workers.serving.releases.verification import ReleaseRefused, ReleaseVerifier
from workers.serving.versions.artifacts import Artifacts

logger = logging.getLogger("trainyard.serving")


class Catalog:
    """Accepts releases, keeps one endpoint per model, and selects the version that answers a request.

    Args:
        verifier: checks the releases' signatures.
        state_file: keeps the releases for the next start.
        artifacts: the cache with model files.
        new_endpoint: returns an endpoint for a model, which calls the given function after each change.
        changed: requests a report to the dashboard.
        check_health: returns facts that `ready` adds, or raises an error if the server is not ready.
    """

    def __init__(
        self,
        *,
        verifier: ReleaseVerifier,
        state_file: StateFile,
        artifacts: Artifacts,
        new_endpoint: Callable[[str, Callable[[], None]], Endpoint],
        changed: Callable[[], None],
        check_health: Callable[[], dict[str, str]] = dict,
    ) -> None:
        self.endpoints: dict[str, Endpoint] = {}
        self._verifier, self._state_file, self._artifacts = verifier, state_file, artifacts
        self._new_endpoint, self._notify, self._check_health = new_endpoint, changed, check_health
        self._written = State()
        # Whether the dashboard, or an earlier run of the server, has named the releases.
        self._is_informed = False

    def resume(self) -> None:
        """Apply the releases in the state file. Their signatures are verified again."""
        self._written = self._state_file.read()
        self._is_informed = bool(self._written.endpoints)
        for model, state in self._written.endpoints.items():
            try:
                for signed in (state.serving, state.newest):
                    if signed is not None:
                        self._verifier.verify(signed)
            except ReleaseRefused as error:
                logger.error("the release of %s in the state file was refused: %s", model, error)
                continue
            self._endpoint(model).resume(state)

    def accept_all(self, bodies: Iterable[object]) -> None:
        """Verify the releases from a poll and apply them. A refusal is logged and reported."""
        for body in bodies:
            self._accept(body)
        self._is_informed = True

    def _accept(self, body: object) -> None:
        try:
            signed = SignedRelease.model_validate(body)
        except ValidationError as error:
            logger.error("an invalid release was received: %s", error)
            return
        endpoint = self.endpoints.get(signed.release.model)
        try:
            release = self._verifier.verify(signed)
            self._endpoint(release.model).apply(signed)
        except ReleaseRefused as error:
            logger.error("a release of %s was refused: %s", signed.release.model, error)
            # A model without an endpoint gets none: its name in the refused release may be false.
            if endpoint is not None:
                endpoint.error = str(error)
                self._notify()

    def pick(self, target: Target) -> PickedVersion:
        """Return the version that answers a request. Raises like `Endpoint.pick`."""
        return self.endpoint(target).pick(target)

    def endpoint(self, target: Target) -> Endpoint:
        """Return a model's endpoint.

        Raises:
            NotFound: the model has none.
        """
        endpoint = self.endpoints.get(target.model)
        if endpoint is None:
            raise NotFound(not_found(target))
        return endpoint

    def columns_size(self, model: str) -> int:
        """Return the largest pipeline's size among a model's loaded versions; 0 if none has one."""
        endpoint = self.endpoints.get(model)
        versions = endpoint.available() if endpoint is not None else ()
        return max((version.table.size for version in versions if version.table is not None), default=0)

    @property
    def is_ready(self) -> bool:
        """Whether every endpoint serves, or has no production version. A new server knows none at first."""
        return self._is_informed and all(endpoint.is_ready for endpoint in self.endpoints.values())

    def check_ready(self) -> dict[str, str]:
        """Return facts that a ready server adds to this state. Raises Unavailable unless ready."""
        if not self.is_ready:
            raise Unavailable("not all endpoints are loaded yet", retry_after=1)
        return self._check_health()

    def _endpoint(self, model: str) -> Endpoint:
        if model not in self.endpoints:
            self.endpoints[model] = self._new_endpoint(model, self.changed)
        return self.endpoints[model]

    def changed(self) -> None:
        """Save the state file, delete unused artifacts, and notify the reporter."""
        # An endpoint whose saved release was refused keeps its entry until a newer release arrives.
        endpoints: dict[str, EndpointState] = dict(self._written.endpoints)
        endpoints |= {
            model: state for model, endpoint in self.endpoints.items() if (state := endpoint.state())
        }
        now = State(endpoints=endpoints)
        # Most changes are of the state of a version, which is not saved.
        if now != self._written:
            self._save(now)
        self._notify()

    def _save(self, now: State) -> None:
        try:
            self._state_file.write(now)
            self._written = now
            # After the state is saved: a server that is killed here needs the files of the saved releases.
            self._artifacts.keep_only(
                {digest for endpoint in self.endpoints.values() for digest in endpoint.needed_digests()}
            )
        # A full disk must not keep a release from being served. The next change saves it.
        except OSError as error:
            logger.error("the releases could not be saved: %s", error)

    async def close(self) -> None:
        """End all children."""
        await asyncio.gather(*(endpoint.close() for endpoint in self.endpoints.values()))
