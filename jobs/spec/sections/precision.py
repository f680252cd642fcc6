"""Declares the spec section `precision`: dtype policy, loss scaling, overrides for layers."""

from typing import Literal, Self

from pydantic import Field, model_validator

from jobs.spec.base import Frozen

Policy = Literal["float32", "float16", "bfloat16", "mixed_float16", "mixed_bfloat16", "float64", "float8"]
UNSUPPORTED_POLICIES: dict[str, str] = {
    "float16": "pure float16 overflows in training; use mixed_float16",
    "bfloat16": "pure bfloat16 loses small weight updates; use mixed_bfloat16",
    "float64": "JAX computes float64 in float32 unless x64 is enabled; use float32",
    "float8": "float8 training is not supported; use mixed_bfloat16",
}


class PrecisionOverride(Frozen):
    """Applies `policy` to layers in whose name the regular expression `match` is found.

    See `jobs.spec.checks.patterns`.
    """

    match: str = Field(min_length=1, max_length=300)
    policy: Policy


class PrecisionSpec(Frozen):
    """The dtype policy of a run. The output layer stays float32 unless overridden."""

    policy: Policy = "float32"
    loss_scale: Literal["none", "dynamic"] | float = "dynamic"
    overrides: tuple[PrecisionOverride, ...] = ()
    matmul: Literal["default", "high", "highest"] = "default"

    @model_validator(mode="after")
    def _check_policy(self) -> Self:
        if reason := UNSUPPORTED_POLICIES.get(self.policy):
            raise ValueError(f"policy {self.policy}: {reason}")
        return self
