"""Precision policy, loss scaling, per-layer overrides."""

from typing import Literal, Self

from pydantic import Field, model_validator

from jobs.contracts.base import Frozen

Policy = Literal["float32", "float16", "bfloat16", "mixed_float16", "mixed_bfloat16", "float64", "float8"]
WILL_NOT_TRAIN: dict[str, str] = {
    "float16": "pure float16 training overflows and is destroyed; use mixed_float16",
    "bfloat16": "pure bfloat16 loses small weight updates; use mixed_bfloat16",
    "float64": "float64 is silently cut to float32 unless x64 is on; use float32",
    "float8": "float8 training is not available yet; use mixed_bfloat16",
}


class PrecisionOverride(Frozen):
    """Layers whose name matches `match` (searched as a regular expression) get `policy`."""

    match: str = Field(min_length=1, max_length=300)
    policy: Policy


class PrecisionSpec(Frozen):
    """The dtype policy of a run. The output layer stays float32 unless overridden."""

    policy: Policy = "float32"
    loss_scale: Literal["none", "dynamic"] | float = "dynamic"
    overrides: tuple[PrecisionOverride, ...] = ()
    matmul: Literal["default", "high", "highest"] = "default"

    @model_validator(mode="after")
    def _trains(self) -> Self:
        if reason := WILL_NOT_TRAIN.get(self.policy):
            raise ValueError(f"policy {self.policy}: {reason}")
        return self
