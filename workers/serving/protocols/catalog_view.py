"""Declares the part of the catalog that protocols read to describe models.

It is declared here because body workers import the protocols, but need no catalog.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from jobs.spec.signature import Signature
from workers.serving.protocols.target import Target
from workers.serving.version_status import State, VersionStatus


class ApprovedView(Protocol):
    """A version's entry in its release."""

    @property
    def number(self) -> int:
        """The version number."""

    @property
    def class_labels(self) -> tuple[str, ...]:
        """The names of its classes, in the order of its output; empty if it has none."""


class VersionView(Protocol):
    """One loaded version."""

    @property
    def approved(self) -> ApprovedView:
        """Its entry in the release."""

    @property
    def state(self) -> State:
        """Its state."""

    def signature_now(self) -> Signature:
        """Return the signature. Raises Unavailable if the version has not been loaded yet."""


class PickedView(Protocol):
    """The version that answers a request."""

    @property
    def version(self) -> VersionView:
        """The version."""


class EndpointView(Protocol):
    """One model's versions."""

    def statuses(self) -> Sequence[VersionStatus]:
        """Return each version's state."""

    def available(self) -> Sequence[VersionView]:
        """Return the versions that answer requests."""


class CatalogView(Protocol):
    """All models."""

    @property
    def endpoints(self) -> Mapping[str, EndpointView]:
        """The endpoints by model name."""

    def endpoint(self, target: Target) -> EndpointView:
        """Return a model's endpoint. Raises NotFound if the model has none."""

    def pick(self, target: Target) -> PickedView:
        """Return the version that answers a request. Raises a `ServingError` if none does."""

    def check_ready(self) -> dict[str, str]:
        """Return facts that a ready server adds to this state. Raises Unavailable unless it is ready."""
