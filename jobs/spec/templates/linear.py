"""Registers the template `linear`: an output layer only."""

from pydantic import Field

from jobs.spec.base import Frozen
from jobs.spec.data.profile import Profile
from jobs.spec.templates.info import TemplateInfo
from jobs.spec.templates.layers import Layer


class LinearArgs(Frozen):
    """Normalized vector → head."""

    l2: float = Field(default=0.0, ge=0, title="L2 penalty")


def layers(args: LinearArgs, profile: Profile) -> tuple[Layer, ...]:  # noqa: ARG001
    """List the hidden layers: none."""
    return ()


INFO = TemplateInfo(
    name="linear",
    label="Linear model",
    help="one dense layer: the baseline to beat",
    arguments=LinearArgs,
    builder="workers.engine.models.templates.linear:linear",
    ranges={"l2": {"kind": "float", "min": 1e-6, "max": 1e-1, "sampling": "log"}},
    searched=("l2",),
    initial_arguments=("l2",),
    layers=layers,
    traced=frozenset({"l2"}),
    head_penalty="l2",
)
