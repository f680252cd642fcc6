"""Declares the answers about precision: the policies with their formats, and dry runs."""

from pydantic import Field

from jobs.answers.base import Answer, CauseOut, Stored
from jobs.messages.reports.precision_comparison import PrecisionComparison


class FormatOut(Answer):
    """A number format."""

    name: str
    bits: int
    exponent: int = Field(description="Bits of the exponent, which determine the range.")
    mantissa: int = Field(description="Bits of the mantissa, which determine the resolution.")
    largest: float = Field(description="The largest finite number.")
    smallest: float = Field(description="The smallest number with full resolution.")
    resolution: float = Field(description="The distance between 1 and the next larger number.")


class AccelerationOut(Answer):
    """The speed of a kind of device under a policy."""

    device: str
    is_faster: bool | None = Field(description="Than float32; null if that is not known.")
    sentence: str = Field(description="The usual gain by the vendor, which was not measured here.")


class PolicyOut(Answer):
    """A dtype policy."""

    policy: str = Field(description="The value of `precision.policy`.")
    computes: FormatOut
    keeps: FormatOut = Field(description="Of weights, gradients and the optimizer's variables.")
    bytes_per_parameter: int = Field(description="In a file, and in memory for predictions.")
    training_bytes_per_parameter: int = Field(description="Weight, gradient and two variables of Adam.")
    trains: bool
    training: str = Field(description="Its use in training, or why that is refused.")
    inference: str
    layers: str = Field(description="The layers that get it; empty: all but input scaling and output.")
    devices: list[AccelerationOut] = Field(description="For each kind of device of the live workers.")
    measured: str = Field(description="By the newest dry run in the project; empty if there is none.")


class PoliciesOut(Answer):
    """All dtype policies."""

    items: list[PolicyOut]


class DryRunOut(Answer):
    """The comparison of a precision with float32 by a job that trains some steps with both."""

    state: str = Field(description="The state of the job; none: it was not requested yet.")
    job: int | None
    policy: str
    result: Stored[PrecisionComparison | None] = Field(description="Null until the job is completed.")
    finding: str = Field(description="The comparison in a sentence; empty until the job is completed.")
    error: CauseOut | None = Field(description="Why the job failed.")
    why_waiting: str = Field(description="A sentence; empty if the job does not wait.")
