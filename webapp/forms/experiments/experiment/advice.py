"""Describes each precision policy for the advisor: number formats, range, resolution and use."""

from typing import NamedTuple

from jobs.spec.sections.precision import UNSUPPORTED_POLICIES


class Format(NamedTuple):
    """A policy's number format, and its consequences for training."""

    policy: str
    computes: str
    keeps: str
    exponent: int
    mantissa: int
    largest: str
    smallest: str
    resolution: str
    good_for: str

    @property
    def refusal(self) -> str:
        """Return the reason why training does not support it; empty if it does."""
        return UNSUPPORTED_POLICIES.get(self.policy, "")

    @property
    def sign(self) -> int:
        return 1


_HALF = (5, 10, "65 504", "6.1e-05", "9.8e-04")
_BRAIN = (8, 7, "3.4e+38", "1.2e-38", "7.8e-03")
_SINGLE = (8, 23, "3.4e+38", "1.2e-38", "1.2e-07")

FORMATS = (
    Format("float32", "float32", "float32", *_SINGLE, "Everything. The reference for the others."),
    Format(
        "mixed_bfloat16",
        "bfloat16",
        "float32",
        *_BRAIN,
        "GPUs from 2020 on and TPUs: float32's range, so no loss scaling; coarse steps.",
    ),
    Format(
        "mixed_float16",
        "float16",
        "float32",
        *_HALF,
        "Older GPUs: finer steps than bfloat16, small range, so losses are scaled.",
    ),
    Format("bfloat16", "bfloat16", "bfloat16", *_BRAIN, "Inference on small devices."),
    Format("float16", "float16", "float16", *_HALF, "Inference on small devices."),
    Format("float64", "float64", "float64", 11, 52, "1.8e+308", "2.2e-308", "2.2e-16", "Checking numerics."),
    Format(
        "float8",
        "float8 (e4m3)",
        "float32",
        4,
        3,
        "448",
        "1.6e-02",
        "1.3e-01",
        "The newest GPUs, large layers.",
    ),
)
"""Bits after IEEE 754 and, for float8, the OCP 8-bit formats; smallest is the smallest normal number."""
