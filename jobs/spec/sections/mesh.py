"""Declares the spec section `mesh`: the devices, their axes, and layout rules for variables."""

import math
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    GetJsonSchemaHandler,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue

from jobs.spec.base import Frozen

MAX_DEVICES = 2**16
"""The most devices in a mesh. Larger numbers are mistakes, and may have thousands of digits."""


class LayoutRule(Frozen):
    """Shards the variables whose whole path matches `match` along `axes`, one entry per dimension.

    Of several rules that match a variable, the first one applies. `match` is a regular expression of
    `jobs.spec.checks.patterns`.
    """

    match: str = Field(min_length=1, max_length=300)
    axes: tuple[str | None, ...] = Field(min_length=1, max_length=8)


class MeshSpec(Frozen):
    """A mesh of devices with named axes. One axis and no layout is data parallel training."""

    devices: Literal["cpu", "gpu", "tpu"] | tuple[str, ...] = "cpu"
    shape: tuple[Annotated[int, Field(le=MAX_DEVICES)], ...] = Field(min_length=1, max_length=4)
    axis_names: tuple[str, ...] = Field(min_length=1, max_length=4)
    batch_axis: str | None = "data"
    simulate: int | None = Field(default=None, ge=1, le=64, description="simulated CPU devices")
    layout: tuple[LayoutRule, ...] = ()
    preallocate: bool = Field(default=False, description="allocate the memory of each GPU at the start")
    memory_fraction: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="the largest share of each GPU's memory; JAX's default if absent",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len(self.shape) != len(self.axis_names):
            raise ValueError(
                f"shape {list(self.shape)} has {len(self.shape)} axes, axis_names {len(self.axis_names)}"
            )
        if len(set(self.axis_names)) < len(self.axis_names):
            raise ValueError(f"axis_names {list(self.axis_names)} repeat a name")
        if any(size < 1 for size in self.shape):
            raise ValueError(f"shape {list(self.shape)} has an empty axis")
        if self.size() > MAX_DEVICES:
            raise ValueError(
                f"shape {list(self.shape)} has {self.size():,} devices; the limit is {MAX_DEVICES:,}"
            )
        if self.batch_axis is not None and self.batch_axis not in self.axis_names:
            raise ValueError(f"batch_axis {self.batch_axis!r} is not among {list(self.axis_names)}")
        if self.simulate is not None and self.simulate != self.size():
            raise ValueError(
                f"shape {list(self.shape)} needs {self.size()} devices, but simulate is {self.simulate}"
            )
        for rule in self.layout:
            if unknown := {axis for axis in rule.axes if axis is not None} - set(self.axis_names):
                raise ValueError(
                    f"layout rule {rule.match!r} has axes {sorted(unknown)}, not in {list(self.axis_names)}"
                )
        return self

    @model_serializer(mode="wrap")
    def _keep_null(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Specs are dumped without nulls, and a missing `batch_axis` would be parsed as the default.
        return {**handler(self), "batch_axis": self.batch_axis}

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Document dumps like input."""
        # By default, the return type of the serializer, any object, would document them.
        model = {key: value for key, value in core_schema["schema"].items() if key != "serialization"}
        return handler({**core_schema, "schema": model})

    @property
    def kind(self) -> str:
        """Return its device kind, such as `cpu`, `gpu` or `tpu`."""
        first = self.devices if isinstance(self.devices, str) else next(iter(self.devices), "cpu")
        return first.split(":")[0]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the devices that it asks for by name; empty if any device of its kind is accepted."""
        return () if isinstance(self.devices, str) else self.devices

    @cached_property
    def matched(self) -> dict[str, list[int]]:
        """Return the cache for `layout_rules.rules_for`: rule indices by variable path."""
        return {}

    def size(self) -> int:
        """Count the devices."""
        return math.prod(self.shape)

    def needs_gpus_to_load(self) -> bool:
        """Return whether its GPUs hold parts of a model that one of them may be too small for."""
        return self.kind == "gpu" and self.size() > 1 and bool(self.layout)

    def axis(self, name: str) -> int:
        """Return the size along the axis `name`."""
        return self.shape[self.axis_names.index(name)]

    def batch_shards(self) -> int:
        """Count the devices among which each batch is divided."""
        return self.axis(self.batch_axis) if self.batch_axis is not None else 1
