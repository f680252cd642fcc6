"""The base class of every model in `jobs.contracts`."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """An immutable model that refuses unknown fields.

    JSON has no NaN and no infinity, so floats are finite unless a field allows otherwise.
    Aliases are the public names. Dumps use them by default, so that a dump can be parsed again.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, serialize_by_alias=True)
