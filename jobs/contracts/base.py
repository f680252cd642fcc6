"""The one base class of everything in `jobs.contracts`."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """An immutable value whose unknown fields are refused.

    NaN and infinity never travel in JSON: floats are finite unless a field says otherwise.
    Aliases are the public names, so dumps use them unasked: what is written can be read back.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, serialize_by_alias=True)
