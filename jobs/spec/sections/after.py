"""Declares the section `after` of a spec: the steps that follow a search or a training."""

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from jobs.spec.base import Frozen
from jobs.spec.sections.data import Slug

Registered = Literal["best", "ensemble", "quantized"]


class Retrain(Frozen):
    """Train the `top` configurations again: find the best epoch, then train for int(best × factor) epochs."""

    top: int = Field(default=1, ge=1, le=100)
    epochs_factor: float = Field(default=1.2, ge=1, le=10)
    include_validation: bool = True
    patience: int = Field(default=10, ge=1)
    epochs_cap: int = Field(default=200, ge=1, le=100_000)
    monitor: str | None = Field(
        default=None, description="the measure that chooses the epoch; the search's objective if absent"
    )

    @field_validator("monitor")
    @classmethod
    def _check_validation_metric(cls, monitor: str | None) -> str | None:
        if monitor is not None and not monitor.startswith("val_"):
            raise ValueError(f"{monitor!r} is not a validation metric; give one that begins with val_")
        return monitor


class Ensemble(Frozen):
    """Combine the retrained models; their weights are fitted to validation predictions."""

    method: Literal["weighted", "mean"] = "weighted"
    weights: Literal["nelder-mead"] = "nelder-mead"


class Quantize(Frozen):
    """Quantize the weights of the best model after training."""

    mode: Literal["int8"] = "int8"


class Register(Frozen):
    """Add versions to the registered model `model`."""

    model: Slug
    what: tuple[Registered, ...] = Field(default=("best",), min_length=1)


class AfterSpec(Frozen):
    """The steps after a search or a single training; None: skip the step."""

    retrain: Retrain | None = None
    ensemble: Ensemble | None = None
    quantize: Quantize | None = None
    # pydantic's BaseModel has a method `register`, inherited from ABCMeta.
    register_: Register | None = Field(default=None, alias="register")

    def has_steps(self) -> bool:
        """Return whether any step is set."""
        return any(step is not None for step in (self.retrain, self.ensemble, self.quantize, self.register_))

    @model_validator(mode="after")
    def _check_inputs(self) -> Self:
        if self.ensemble is not None and (self.retrain is None or self.retrain.top < 2):
            raise ValueError(
                "ensemble: an ensemble needs at least two retrained models: set retrain.top to 2 or more"
            )
        if self.register_ is not None:
            have = {
                "best": True,
                "ensemble": self.ensemble is not None,
                "quantized": self.quantize is not None,
            }
            if missing := [what for what in self.register_.what if not have[what]]:
                raise ValueError(f"register contains {missing}, but these steps are not set")
        return self
