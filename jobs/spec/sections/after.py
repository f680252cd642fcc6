"""Declares the spec section `after`: the steps that follow a search or a training."""

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, SerializeAsAny, ValidationInfo, field_validator, model_validator

from jobs.spec.base import DocumentedAs, Frozen
from jobs.spec.exports import DEFAULT_QUANTIZATION, QUANTIZATIONS, ExportFormat
from jobs.spec.sections.data import Slug

Registered = Literal["best", "ensemble", "quantized"]
if TYPE_CHECKING:
    QuantizationMode = str
else:
    # Computed from the table, which a type checker cannot do.
    QuantizationMode = Literal[tuple(QUANTIZATIONS)]
_OPTION_CLASSES = [entry.options for entry in QUANTIZATIONS.values() if entry.options is not None]


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

    mode: QuantizationMode = DEFAULT_QUANTIZATION.name
    # Without options in the table there is no field, so that REST documents none that is always null.
    if _OPTION_CLASSES:
        options: Annotated[SerializeAsAny[Frozen], DocumentedAs(reduce(or_, _OPTION_CLASSES))] | None = Field(
            default=None, description="an instance of the mode's options class"
        )

        @field_validator("options", mode="before")
        @classmethod
        def _parse_options(cls, options: Any, context: ValidationInfo) -> Frozen | None:
            # A refused mode is missing in the data and has its own error.
            if options is None or "mode" not in context.data:
                return None
            entry = QUANTIZATIONS[context.data["mode"]]
            if entry.options is None:
                raise ValueError(f"{entry.name} has no options; leave them out")
            return entry.options.model_validate(options)

    @property
    def format(self) -> ExportFormat:
        """Return the mode's entry in the format table."""
        return QUANTIZATIONS[self.mode]

    def format_options(self) -> Frozen | None:
        """Return the format's options, or their defaults; None if it has none."""
        kind = self.format.options
        return None if kind is None else getattr(self, "options", None) or kind()


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
