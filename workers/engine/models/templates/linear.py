"""Builds the layers for the template `linear`."""

from typing import Any

from jobs.spec.templates.linear import LinearArgs
from workers.engine.models.templates.blocks import flat
from workers.engine.models.templates.site import Site


def linear(site: Site, args: LinearArgs, x: Any) -> Any:  # noqa: ARG001  its penalty is on the output layer
    """Return the flattened input, (rows, features)."""
    return flat(site, x)
