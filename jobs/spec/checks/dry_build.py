"""Declares a dry build's result: the built model and its declared hyperparameters."""

from collections.abc import Iterator, Mapping
from typing import Literal, Self

from pydantic import ValidationError

from jobs.spec.base import Frozen
from jobs.spec.data.profile import DataKind, DataSchema
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.problems import Problem, escaped, problems
from jobs.spec.sections.code_model import COMPILED, FIT, ONE_CALL, OWN_FIT, CodeModel
from jobs.spec.sections.data import Task
from jobs.spec.space.narrowing import NotNarrower, narrow_space
from jobs.spec.space.search_space import Parameter, Space, value_errors

EMPTY_SPACE = (
    "the code declares no hyperparameters, so there is nothing to search: leave out search, add hp.…, or "
    "search a field of fit, such as fit/batch_size"
)

type Output = Literal["probabilities", "logits", "two_probabilities", "two_logits", "numbers"]
"""The meaning of a model's outputs. `two_…`: one output for each of two classes."""


class DataShape(Frozen):
    """The form of the rows for which a model is built."""

    kind: DataKind
    task: Task
    input_shape: tuple[int, ...]
    outputs: int

    @classmethod
    def from_schema(cls, schema: DataSchema) -> Self:
        """Read the row shape from a profile."""
        return cls.model_validate({name: getattr(schema, name) for name in cls.model_fields})


class BuiltModel(Frozen):
    """The model that own code builds for data of one shape.

    Attributes:
        space: the hyperparameters that it declares.
        is_compiled: whether the code compiles the model.
        own_fit: whether the class trains the model by its own fit.
        one_call: whether a training is one call of a fit: that of the class, or that of Keras for a model
            with its own steps. It cannot be continued.
        loss: the name of its loss; empty if the code does not compile the model.
        metrics: the names of the values that a training has for each epoch, as far as they are known.
        input_shape: of the model, without the batch; null: any size.
        output_shape: likewise.
        output: the meaning of the outputs.
        one_hot: whether its loss takes one number for each class, not the number of the class.
        parameters: with the defaults of all hyperparameters.
        custom_objects: layers, losses and metrics that are not of Keras.
        builds: how often the model was built.
        notes: sentences about the space.
        unsaved: why the model cannot be saved or loaded again, with the remedy; empty if it can.
    """

    space: Space = ()
    is_compiled: bool
    own_fit: bool
    one_call: bool = False
    loss: str = ""
    metrics: tuple[str, ...] = ()
    input_shape: tuple[int | None, ...]
    output_shape: tuple[int | None, ...]
    output: Output
    one_hot: bool = False
    parameters: int
    custom_objects: tuple[str, ...] = ()
    builds: int
    notes: tuple[str, ...] = ()
    unsaved: str = ""

    @property
    def unused(self) -> Mapping[str, str]:
        """Map the pointers of `fit` fields without effect to the reason."""
        if self.own_fit:
            return OWN_FIT
        compiled = COMPILED if self.is_compiled else {}
        return {**compiled, **ONE_CALL} if self.one_call else compiled


def problems_of(spec: ExperimentSpec, built: BuiltModel) -> Iterator[Problem]:
    """Yield the settings that do not fit the model that an experiment's own code builds."""
    yield from _problems_of_settings(spec, built)
    yield from _problems_of_files(spec, built)
    if isinstance(spec.model, CodeModel):
        yield from _problems_of_values(spec.model, built.space)
    yield from _problems_of_fields(spec, built)
    if spec.search is None:
        return
    if not _whole_space(spec, built):
        yield Problem("/search", EMPTY_SPACE)
        return
    yield from _problems_of_objectives(spec, built)
    try:
        complete_spec(spec, built)
    except NotNarrower as error:
        yield from error.problems
    except ValidationError as error:
        yield from problems(error, spec.to_json())


def _problems_of_settings(spec: ExperimentSpec, built: BuiltModel) -> Iterator[Problem]:
    """Yield settings without effect that differ from their default."""
    for pointer, reason in built.unused.items():
        section, _, field = pointer[1:].partition("/")
        holder = getattr(spec, section)
        default = type(holder).model_fields[field].get_default(call_default_factory=True)
        if getattr(holder, field) != default:
            yield Problem(pointer, f"has no effect on {spec.model.info.name}, since {reason}; leave it out")


def _problems_of_files(spec: ExperimentSpec, built: BuiltModel) -> Iterator[Problem]:
    """Yield the steps that need the model's file, if it cannot be saved."""
    if not built.unsaved:
        return
    for name in ("register_", "quantize", "ensemble"):
        if getattr(spec.after, name) is not None:
            message = (
                f"{built.unsaved}. Without a file of the model there is nothing for this step; without the "
                "step the trained weights are kept"
            )
            yield Problem(f"/after/{name.rstrip('_')}", message)


def _problems_of_objectives(spec: ExperimentSpec, built: BuiltModel) -> Iterator[Problem]:
    """Yield objectives that the code does not measure."""
    # The metrics of a custom fit are known only after a whole training.
    if not built.metrics or built.own_fit:
        return
    for pointer, objective in spec.placed_objectives():
        if objective.metric not in built.metrics:
            measured = ", ".join(built.metrics)
            message = f"{objective.metric!r} is not measured; the code has {measured}"
            yield Problem(f"{pointer}/metric", message)


def _problems_of_fields(spec: ExperimentSpec, built: BuiltModel) -> Iterator[Problem]:
    """Yield searched `fit` fields without effect, and hyperparameters in the code with such names."""
    for name in (parameter.name for parameter in built.space if parameter.name.startswith(FIT)):
        message = f"the code declares {name!r}; names that begin with {FIT} are fields of fit: rename it"
        yield Problem("/model/entry", message)
    for i, row in enumerate(spec.search.space if spec.search is not None else ()):
        if (reason := spec.model.info.why_unused(row.name, built.unused)) is not None:
            message = f"{row.name!r} has no effect on {spec.model.info.name}, since {reason}; leave it out"
            yield Problem(f"/search/space/{i}/name", message)


def _problems_of_values(model: CodeModel, space: Space) -> Iterator[Problem]:
    declared = {parameter.name: parameter for parameter in space}
    for name, value in model.hyperparameters.items():
        here = f"/model/hyperparameters/{escaped(name)}"
        if name not in declared:
            yield Problem(here, f"the code declares no {name!r}; it has {', '.join(declared) or 'none'}")
            continue
        alone = declared[name].model_copy(update={"when": None})
        yield from (Problem(here, message) for _, message in value_errors((alone,), {name: value}))


def complete_spec(spec: ExperimentSpec, built: BuiltModel) -> ExperimentSpec:
    """Return the spec with the whole space that its code declares, narrowed by the rows that it has.

    A value in `model.hyperparameters` fixes the hyperparameter, unless a row in the space names it.

    Raises:
        NotNarrower: a row names no hyperparameter in the code, or has values that it does not have.
        pydantic.ValidationError: the search does not fit the whole space.
    """
    if spec.search is None or not isinstance(spec.model, CodeModel):
        return spec
    declared = _whole_space(spec, built)
    sent = [_narrowing(row, declared) for row in spec.search.space]
    named = {row.name for row in spec.search.space}
    fixed = [
        {"name": name, "kind": "fixed", "value": value}
        for name, value in spec.model.hyperparameters.items()
        if name not in named
    ]
    space = narrow_space(declared, [*sent, *fixed])
    whole = spec.to_json()
    dumped = spec.search.model_copy(update={"space": space})
    whole["search"] = dumped.model_dump(mode="json", by_alias=True, exclude_none=True)
    whole["model"].pop("hyperparameters", None)
    return ExperimentSpec.model_validate(whole)


def _whole_space(spec: ExperimentSpec, built: BuiltModel) -> Space:
    """Return the space that the code declares, and then the fit fields that the experiment searches."""
    rows = spec.search.space if spec.search is not None else ()
    return (*built.space, *(row for row in rows if row.name.startswith(FIT)))


def _narrowing(row: Parameter, declared: Space) -> dict[str, object]:
    """Return the fields in a row that narrow a declared hyperparameter; the code sets the others."""
    sent = row.model_dump(mode="json", by_alias=True, exclude_none=True)
    before = next((parameter for parameter in declared if parameter.name == row.name), None)
    sampling = getattr(before, "sampling", None)
    # A row always has a sampling, so a default one may not have been given.
    if sent.get("sampling") == "linear" and sampling is not None:
        sent["sampling"] = sampling
    if before is not None and "when" not in sent and before.when is not None:
        sent["when"] = before.model_dump(mode="json", by_alias=True)["when"]
    return sent
