"""Which model an experiment trains: one of our templates (later: own code, hypermodels, versions)."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from jobs.contracts.base import Frozen
from jobs.contracts.problems import message_of

Activation = Literal["relu", "gelu", "silu", "tanh"]


class MlpArgs(Frozen):
    """`mlp`: normalized vector → `layers` × (Dense(units) → activation → dropout) → head."""

    units: int = Field(default=64, ge=1, le=65_536)
    layers: int = Field(default=1, ge=1, le=64)
    dropout: float = Field(default=0.0, ge=0, lt=1)
    activation: Activation = "relu"
    batch_norm: bool = False


class CnnArgs(Frozen):
    """`cnn`: normalized image → `layers` × (Conv → activation → pool) → Dense(units) → head."""

    filters: int = Field(default=32, ge=1, le=4096)
    kernel: int = Field(default=3, ge=1, le=15)
    layers: int = Field(default=2, ge=1, le=16)
    units: int = Field(default=64, ge=1, le=65_536)
    dropout: float = Field(default=0.0, ge=0, lt=1)
    activation: Activation = "relu"


class LinearArgs(Frozen):
    """`linear`: normalized vector → head."""

    l2: float = Field(default=0.0, ge=0)


TemplateName = Literal["mlp", "cnn", "linear"]
TEMPLATES: dict[TemplateName, type[Frozen]] = {"mlp": MlpArgs, "cnn": CnnArgs, "linear": LinearArgs}


class TemplateModel(Frozen):
    """One of our own templates with its arguments (defaults filled in by `resolved`)."""

    kind: Literal["template"] = "template"
    template: TemplateName
    args: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _args_fit_the_template(self) -> Self:
        try:
            self.resolved()
        except ValidationError as error:
            item = error.errors()[0]
            where = ".".join(str(part) for part in item["loc"])
            known = ", ".join(TEMPLATES[self.template].model_fields)
            raise ValueError(
                f"args.{where}: {message_of(item)} (got {item.get('input')!r}); {self.template} takes {known}"
            ) from error
        return self

    def resolved(self) -> Frozen:
        """Return the typed arguments of the template with every default filled in."""
        return TEMPLATES[self.template].model_validate(self.args)


ModelSpec = Annotated[TemplateModel, Field()]
