"""Declares the spec section `precision`: dtype policy, loss scaling, overrides for layers."""

from typing import Literal, Self

from pydantic import Field, model_validator

from jobs.spec.base import Frozen

Policy = Literal["float32", "float16", "bfloat16", "mixed_float16", "mixed_bfloat16", "float64", "float8"]
UNSUPPORTED_POLICIES: dict[str, str] = {
    "float16": "most trainings in pure float16 fail: gradients overflow, and small numbers of the optimizer "
    "become 0; train with mixed_float16, and cast the trained model by after.quantize with the mode float16",
    "bfloat16": "most trainings in pure bfloat16 stall: small weight updates are rounded away; train with "
    "mixed_bfloat16, and cast the trained model by after.quantize with the mode bfloat16",
}
"""Policies that cannot train reliably, with the reason. See decision 88 for the measurements."""


class PrecisionOverride(Frozen):
    """Applies `policy` to layers in whose name the regular expression `match` is found.

    See `jobs.spec.checks.patterns`.
    """

    match: str = Field(min_length=1, max_length=300)
    policy: Policy


class PrecisionSpec(Frozen):
    """The dtype policy of a run. The output layer is never below float32 unless overridden."""

    policy: Policy = "float32"
    loss_scale: Literal["none", "dynamic"] | float = "dynamic"
    overrides: tuple[PrecisionOverride, ...] = ()
    matmul: Literal["default", "high", "highest"] = "default"

    @model_validator(mode="after")
    def _check_policy(self) -> Self:
        if reason := UNSUPPORTED_POLICIES.get(self.policy):
            raise ValueError(f"policy {self.policy}: {reason}")
        return self
