"""All endpoints of this server, and the state file that mirrors them."""

import asyncio
import logging
from collections.abc import Callable

from pydantic import ValidationError

from jobs.contracts.release import SignedRelease
from workers.serving.errors import NotFound, Unavailable
from workers.serving.protocols.target import Target
from workers.serving.releases.artifacts import Artifacts
from workers.serving.releases.endpoint import Endpoint, Picked, not_found
from workers.serving.releases.state import EndpointState, State, StateFile
from workers.serving.releases.trust import ReleaseRefused, Trust

logger = logging.getLogger("trainyard.serving")


class Catalog:
    """Takes releases in, keeps one endpoint per model, answers who serves what."""

    def __init__(
        self,
        *,
        trust: Trust,
        state_file: StateFile,
        artifacts: Artifacts,
        new_endpoint: Callable[[str, Callable[[], None]], Endpoint],
        changed: Callable[[], None],
    ) -> None:
        self.endpoints: dict[str, Endpoint] = {}
        self._trust, self._state_file, self._artifacts = trust, state_file, artifacts
        self._new_endpoint, self._tell = new_endpoint, changed
        self._written = State()

    def resume(self) -> None:
        """Take up the releases of the state file; signatures are checked as if they had just come."""
        self._written = self._state_file.read()
        for model, state in self._written.endpoints.items():
            try:
                for signed in (state.serving, state.newest):
                    if signed is not None:
                        self._trust.verify(signed)
            except ReleaseRefused as refusal:
                logger.error("the state file's release of %s is refused: %s", model, refusal)
                continue
            self._endpoint(model).resume(state)

    def take(self, body: object) -> None:
        """Verify one release as the dashboard sent it and bring it into effect; a refusal is reported."""
        try:
            signed = SignedRelease.model_validate(body)
        except ValidationError as error:
            logger.error("a release cannot be read: %s", error)
            return
        endpoint = self.endpoints.get(signed.release.model)
        try:
            release = self._trust.verify(signed)
            self._endpoint(release.model).adopt(signed)
        except ReleaseRefused as refusal:
            logger.error("a release of %s is refused: %s", signed.release.model, refusal)
            if endpoint is not None:
                endpoint.error = str(refusal)
                self._tell()

    def pick(self, target: Target) -> Picked:
        """Return the version that answers a request; see `Endpoint.pick`."""
        return self.endpoint(target).pick(target)

    def endpoint(self, target: Target) -> Endpoint:
        """Return the endpoint of a model.

        Raises:
            NotFound: there is none.
        """
        endpoint = self.endpoints.get(target.model)
        if endpoint is None:
            raise NotFound(not_found(target))
        return endpoint

    @property
    def is_ready(self) -> bool:
        """Every endpoint answers or was told to be down."""
        return all(endpoint.is_ready for endpoint in self.endpoints.values())

    def check_ready(self) -> None:
        """Raise Unavailable unless ready."""
        if not self.is_ready:
            raise Unavailable("not every endpoint is warm yet", retry_after=1)

    def _endpoint(self, model: str) -> Endpoint:
        if model not in self.endpoints:
            self.endpoints[model] = self._new_endpoint(model, self.changed)
        return self.endpoints[model]

    def changed(self) -> None:
        """Bring the state file and the cached files in line, and tell whoever reports."""
        # an endpoint whose stored release was refused keeps its entry: the dashboard will overrule it
        kept: dict[str, EndpointState] = dict(self._written.endpoints)
        kept |= {model: state for model, one in self.endpoints.items() if (state := one.state())}
        now = State(endpoints=kept)
        if now != self._written:
            self._state_file.write(now)
            self._written = now
            self._artifacts.keep_only(
                {digest for endpoint in self.endpoints.values() for digest in endpoint.needed_digests()}
            )
        self._tell()

    async def close(self) -> None:
        """End all children."""
        await asyncio.gather(*(endpoint.close() for endpoint in self.endpoints.values()))
