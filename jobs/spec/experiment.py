"""Declares the experiment spec, version 1, which forms, the REST API, JSON files and runners use."""

import hashlib
import json
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ModelWrapValidatorHandler, ValidationError, WithJsonSchema, model_validator
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from jobs.spec.base import Frozen
from jobs.spec.data.columns import TextEncode
from jobs.spec.sections.after import AfterSpec
from jobs.spec.sections.data import DataSpec
from jobs.spec.sections.fit import KERAS_BATCH_SIZE, FitSpec
from jobs.spec.sections.mesh import MeshSpec
from jobs.spec.sections.model import Model, is_own_code, needs_no_data
from jobs.spec.sections.precision import PrecisionSpec
from jobs.spec.sections.resources import Resources
from jobs.spec.sections.rungs import RungOptions
from jobs.spec.sections.search import Objective, SearchSpec
from jobs.spec.space.searchable import TEMPLATE, is_known, unknown_name
from jobs.spec.templates import TEMPLATES

LOAD_FIRST = (
    "Field required: name a data set. The rows that load_data of the code returns become one on the page of "
    "its version, or by POST /api/v1/code/DIGEST/data"
)


class ExperimentSpec(Frozen):
    """The complete definition of an experiment. A revision stores it with its digest."""

    # Not `const`: a public generator of clients writes broken code for a constant number.
    version: Annotated[Literal[1], WithJsonSchema({"type": "integer", "enum": [1]})] = 1
    data: DataSpec | None = Field(default=None, description="only scripts need none")
    model: Model
    fit: FitSpec = FitSpec()
    search: SearchSpec | None = None
    mesh: MeshSpec | None = None
    precision: PrecisionSpec = PrecisionSpec()
    after: AfterSpec = AfterSpec()
    resources: Resources = Field(default_factory=Resources)

    @model_validator(mode="wrap")
    @classmethod
    def _require_data(cls, body: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        # The error for a required field, together with the errors in other sections.
        missing = _missing_data(body)
        try:
            spec = validate(_with_batch_size(body))
        except ValidationError as error:
            if not isinstance(body, dict) or body.get("data") is not None or needs_no_data(body.get("model")):
                raise
            others = [_repeated(item) for item in error.errors(include_url=False)]
            raise ValidationError.from_exception_data(cls.__name__, [missing, *others]) from error
        if spec.data is None and spec.model.info.needs_data:
            raise ValidationError.from_exception_data(cls.__name__, [missing])
        return spec

    @model_validator(mode="after")
    def _check_objectives(self) -> Self:
        if self.search is None or self.model.info.own_names:
            return self
        several = self.search.objectives
        for i, objective in enumerate(self.search.ranked_by()):
            if not objective.metric.startswith("val_"):
                place = "objective" if several is None else f"objectives.{i}"
                raise ValueError(
                    f"search.{place}.metric: {objective.metric!r} is not a validation metric; give one that "
                    "begins with val_"
                )
        return self

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        # A script has no batches that are known.
        divides = self.mesh is not None and not self.model.info.trains_itself
        if self.mesh is not None and divides and self.fit.batch_size % self.mesh.batch_shards():
            raise ValueError(
                f"fit.batch_size {self.fit.batch_size} does not divide over {self.mesh.batch_shards()} "
                f"devices of mesh axis {self.mesh.batch_axis!r}"
            )
        if self.after.retrain is not None and self.after.retrain.top > 1:
            if self.search is None:
                raise ValueError(
                    f"after.retrain.top {self.after.retrain.top} is above 1, "
                    "but without a search there is only one model"
                )
            top, planned = self.after.retrain.top, self.search.trials_planned(self.fit.epochs)
            if top > planned:
                raise ValueError(f"after.retrain.top {top} is above the {planned} trials planned")
        is_k_fold = self.search is not None and self.search.evaluation.kind == "k_fold"
        if is_k_fold and self.data is not None and self.data.split.time:
            raise ValueError(
                "search.evaluation: k_fold would train on rows after the validation rows; "
                "use holdout with a split over time"
            )
        return self

    @model_validator(mode="after")
    def _check_rungs(self) -> Self:
        options = self.search.options if self.search is not None else None
        if not isinstance(options, RungOptions):
            return self
        for name in ("min_epochs", "max_epochs"):
            epochs = getattr(options, name)
            if epochs is not None and epochs > self.fit.epochs:
                raise ValueError(f"search.options.{name} {epochs} is above fit.epochs {self.fit.epochs}")
        return self

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        if self.search is None or self.model.info.own_names:
            return self
        if not self.search.space:
            raise ValueError("search.space: give at least one hyperparameter")
        tries_others = any(parameter.name == TEMPLATE for parameter in self.search.space)
        for i, parameter in enumerate(self.search.space):
            # An argument of the template in `model`. A trial has another template.
            if tries_others and any(
                parameter.name in info.arguments.model_fields for info in TEMPLATES.values()
            ):
                continue
            if not is_known(parameter.name, self.model):
                raise ValueError(f"search.space.{i}.name: {unknown_name(parameter.name, self.model)}")
        return self

    @property
    def texts(self) -> TextEncode:
        """Return the encoding for texts that have no option themselves."""
        return (self.data.texts if self.data is not None else None) or self.model.info.texts

    @property
    def required_data(self) -> DataSpec:
        """Return the section `data`, which the model needs.

        Raises:
            ValueError: there is none.
        """
        if self.data is None:
            raise ValueError("this experiment has no data")
        return self.data

    def placed_objectives(self) -> list[tuple[str, Objective]]:
        """Return the search's objectives with their JSON pointers; none without a search."""
        if self.search is None:
            return []
        if self.search.objectives is None:
            return [("/search/objective", self.search.objective)]
        return [(f"/search/objectives/{i}", objective) for i, objective in enumerate(self.search.objectives)]

    def to_json(self) -> dict[str, Any]:
        """Return the spec as plain JSON values under its public field names."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    def unregistered(self) -> Self:
        """Return the same experiment without the registration of its models."""
        return self.model_copy(update={"after": self.after.model_copy(update={"register_": None})})

    def digest(self) -> str:
        """Return the sha256 of the canonical JSON form."""
        # Sorted and without spaces, so that equal specs have equal digests.
        canonical = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


def _with_batch_size(body: Any) -> Any:
    """Return a spec with Keras' batch size if it has own code and names none."""
    fit = body.get("fit", {}) if isinstance(body, dict) else None
    if not isinstance(fit, dict) or "batch_size" in fit or not is_own_code(body.get("model")):
        return body
    return {**body, "fit": {**fit, "batch_size": KERAS_BATCH_SIZE}}


def _missing_data(body: Any) -> InitErrorDetails:
    """Return the error for a spec without data. For own code, the message names the way to get them."""
    if isinstance(body, dict) and is_own_code(body.get("model")):
        return InitErrorDetails(type=PydanticCustomError("missing", LOAD_FIRST), loc=("data",), input=body)
    return InitErrorDetails(type="missing", loc=("data",), input=body)


def _repeated(error: ErrorDetails) -> InitErrorDetails:
    return InitErrorDetails(
        type=error["type"], loc=error["loc"], input=error["input"], ctx=error.get("ctx", {})
    )
