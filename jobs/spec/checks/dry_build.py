"""Declares a dry build's result: the built model and its declared hyperparameters."""

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Literal, Self

from pydantic import ValidationError

from jobs.spec.base import Frozen
from jobs.spec.data.profile import DataKind, DataSchema
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan.model_state import BuiltVariable, ModelState
from jobs.spec.problems import Problem, escaped, problems, warning
from jobs.spec.sections import measures
from jobs.spec.sections.code_model import COMPILED, FIT, FIT_ARGUMENTS, MEASURES, ONE_CALL, OWN_FIT, CodeModel
from jobs.spec.sections.data import Task
from jobs.spec.sections.fit import KERAS_BATCH_SIZE
from jobs.spec.sections.monitors import TRAINING_LOSS, monitors_of_training
from jobs.spec.sections.space_growth import with_defaults
from jobs.spec.space.narrowing import NotNarrower, narrow_space
from jobs.spec.space.search_space import FixedParameter, Parameter, Space, Value, Values, value_errors

EMPTY_SPACE = (
    "the code declares no hyperparameters, so there is nothing to search: leave out search, add hp.…, or "
    "search a field of fit, such as fit/batch_size"
)

DIGITS = re.compile(r"\d+")
SLIP = 0.85
"""Names that are at least so much alike are taken for one name, which a person has mistyped."""

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


class Unasked(Frozen):
    """Hyperparameters for which the code asked in no build in which another one had this value.

    Code may declare them behind an `if`, which KerasTuner does not know as a condition.
    """

    name: str
    value: Value
    names: tuple[str, ...]

    def applies_to(self, values: Values) -> bool:
        """Return whether a configuration has this value. In Python, True == 1."""
        value = values.get(self.name)
        return value == self.value and isinstance(value, bool) == isinstance(self.value, bool)


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
        measures_all: whether an objective is one of them. Otherwise the class's fit returns one number, which
            is the objective.
        measured_by_spec: whether validation rows are measured by the loss and the metrics of the experiment,
            since Keras cannot evaluate the compiled model.
        task: of the data.
        replaced: the arguments that the class's fit sets itself, or does not take.
        input_shape: of the model, without the batch; null: any size.
        output_shape: likewise.
        output: the meaning of the outputs.
        one_hot: whether its loss takes one number for each class, not the number of the class.
        parameters: with the defaults of all hyperparameters.
        custom_objects: layers, losses and metrics that are not of Keras.
        builds: how often the model was built to find hyperparameters.
        most_builds: how often it would be built at most.
        notes: sentences about the space.
        unsaved: why the model cannot be saved or loaded again, with the remedy; empty if it can.
        unasked: which hyperparameters have no effect beside which values of others, as far as builds show.
        variables: with the defaults of all hyperparameters; none in results of earlier releases.
        optimizer_bytes: see `ModelState`.
        row_bytes: likewise.
        attention: layers that compute attention under mixed_float16 by JAX's own function, which refuses
            float16 on CPUs; with the defaults of all hyperparameters.
        index_layers: the layers that take values of the rows as indices, if the rows are normalized; with the
            defaults of all hyperparameters.
    """

    space: Space = ()
    is_compiled: bool
    own_fit: bool
    one_call: bool = False
    loss: str = ""
    metrics: tuple[str, ...] = ()
    measures_all: bool = False
    measured_by_spec: bool = False
    task: Task | None = None
    # Those of earlier dry builds are not known.
    replaced: tuple[str, ...] = ("batch_size", "shuffle")
    input_shape: tuple[int | None, ...]
    output_shape: tuple[int | None, ...]
    output: Output
    one_hot: bool = False
    parameters: int
    custom_objects: tuple[str, ...] = ()
    builds: int
    most_builds: int = 100
    notes: tuple[str, ...] = ()
    unsaved: str = ""
    unasked: tuple[Unasked, ...] = ()
    variables: tuple[BuiltVariable, ...] = ()
    optimizer_bytes: int = 0
    row_bytes: int | None = None
    attention: tuple[str, ...] = ()
    index_layers: tuple[str, ...] = ()

    @property
    def state(self) -> ModelState | None:
        """Return the model's variables; None in results of earlier releases."""
        if not self.variables:
            return None
        return ModelState(
            variables=self.variables, optimizer_bytes=self.optimizer_bytes, row_bytes=self.row_bytes
        )

    @property
    def unused(self) -> Mapping[str, str]:
        """Map the pointers of `fit` fields without effect to the reason."""
        if self.own_fit:
            sets = {f"/fit/{name}": f"its fit sets {name}" for name in FIT_ARGUMENTS if name in self.replaced}
            return {**OWN_FIT, **sets}
        compiled = COMPILED if self.is_compiled else {}
        if self.measured_by_spec:
            compiled = {pointer: reason for pointer, reason in compiled.items() if pointer not in MEASURES}
        return {**compiled, **ONE_CALL} if self.one_call else compiled


def problems_of(spec: ExperimentSpec, built: BuiltModel) -> Iterator[Problem]:
    """Yield the settings that do not fit the model that an experiment's own code builds."""
    yield from unused_problems(spec, built.unused)
    yield from _problems_of_files(spec, built)
    if isinstance(spec.model, CodeModel):
        yield from _problems_of_values(spec.model, built.space)
    yield from _problems_of_names(built)
    yield from _problems_of_monitors(spec, built)
    if spec.search is None:
        return
    if not _whole_space(spec, built):
        yield Problem("/search", EMPTY_SPACE)
        return
    if spec.search.info.has_rungs and built.own_fit and "epochs" in built.replaced:
        message = (
            f"{spec.search.algorithm} compares trials after some epochs, but the fit of "
            f"{spec.model.info.name} sets epochs itself; choose random or bayesian, or pass on the epochs "
            "that fit gets"
        )
        yield Problem("/search/algorithm", message)
    try:
        complete_spec(spec, built)
    except NotNarrower as error:
        yield from error.problems
    except ValidationError as error:
        yield from problems(error, spec.to_json())


def unused_problems(spec: ExperimentSpec, unused: Mapping[str, str]) -> Iterator[Problem]:
    """Yield settings without effect that differ from their default, and searched ones.

    Args:
        spec: the experiment.
        unused: pointers of fields without effect, with the reason.
    """
    for pointer, reason in unused.items():
        section, _, field = pointer[1:].partition("/")
        holder = getattr(spec, section)
        default = type(holder).model_fields[field].get_default(call_default_factory=True)
        # Specs of own code that name no batch size have Keras' one; those of earlier releases, the default.
        defaults = (default, KERAS_BATCH_SIZE) if pointer == "/fit/batch_size" else (default,)
        if getattr(holder, field) not in defaults:
            yield Problem(pointer, f"has no effect on {spec.model.info.name}, since {reason}; leave it out")
    for i, row in enumerate(spec.search.space if spec.search is not None else ()):
        if (searched := spec.model.info.why_unused(row.name, unused)) is not None:
            message = f"{row.name!r} has no effect on {spec.model.info.name}, since {searched}; leave it out"
            yield Problem(f"/search/space/{i}/name", message)


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


def _problems_of_monitors(spec: ExperimentSpec, built: BuiltModel) -> Iterator[Problem]:
    """Yield objectives and other measures that no epoch has."""
    for pointer, name in _not_measured(spec, built) if not _may_validate_later(built) else ():
        listed = ", ".join(_measured(spec, built))
        yield Problem(pointer, f"{name!r} is not measured; the code has {listed}")


def _not_measured(spec: ExperimentSpec, built: BuiltModel) -> Iterator[tuple[str, str]]:
    """Yield the monitors that the dry build did not measure; none if its measures are unknown."""
    measured = _measured(spec, built)
    yield from (monitor for monitor in _monitors(spec) if measured and monitor[1] not in measured)


def _may_validate_later(built: BuiltModel) -> bool:
    """Return whether a class's fit did not validate in the one epoch of the dry build, but may in others.

    Such a fit passes `validation_freq` to Keras, for example.
    """
    return built.own_fit and not any(name.startswith("val_") for name in built.metrics)


def _measured(spec: ExperimentSpec, built: BuiltModel) -> Sequence[str]:
    """Return the names that an objective may have; none if they are unknown."""
    if built.own_fit and not built.measures_all:
        return ()
    if (built.is_compiled or built.one_call) and not built.measured_by_spec:
        return built.metrics
    if built.task is None:
        return ()
    return (*built.metrics, *measures.validation_names(spec.fit.metrics, built.task))


def _monitors(spec: ExperimentSpec) -> Iterator[tuple[str, str]]:
    """Yield the pointer and the name of each measure that chooses a trial or an epoch, or ends a training."""
    yield from ((f"{pointer}/metric", objective.metric) for pointer, objective in spec.placed_objectives())
    early, retrain = spec.fit.early_stopping, spec.after.retrain
    if early is not None and early.monitor not in (None, TRAINING_LOSS):
        yield "/fit/early_stopping/monitor", str(early.monitor)
    elif spec.search is None and (retrain is None or retrain.monitor is None):
        # It chooses the epoch of a training without a search.
        yield "/fit/early_stopping/monitor", monitors_of_training(None, retrain, early).best.metric
    if retrain is not None and retrain.monitor is not None:
        yield "/after/retrain/monitor", retrain.monitor


def _problems_of_names(built: BuiltModel) -> Iterator[Problem]:
    """Yield hyperparameters in the code that have the name of a `fit` field."""
    for name in (parameter.name for parameter in built.space if parameter.name.startswith(FIT)):
        message = f"the code declares {name!r}; names that begin with {FIT} are fields of fit: rename it"
        yield Problem("/model/entry", message)


def _problems_of_values(model: CodeModel, space: Space) -> Iterator[Problem]:
    declared = {parameter.name: parameter for parameter in space}
    for name, value in model.hyperparameters.items():
        here = f"/model/hyperparameters/{escaped(name)}"
        if is_addition(name, space):
            continue
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
    # Sent configurations do not name hyperparameters of the code alone, which then have their defaults.
    new = {row.name for row in space} - named
    start_with = tuple(with_defaults(space, new, values) for values in spec.search.start_with)
    dumped = spec.search.model_copy(update={"space": space, "start_with": start_with})
    whole["search"] = dumped.model_dump(mode="json", by_alias=True, exclude_none=True)
    whole["model"].pop("hyperparameters", None)
    return ExperimentSpec.model_validate(whole)


def _whole_space(spec: ExperimentSpec, built: BuiltModel) -> Space:
    """Return the space that the code declares, and then the rows of the experiment beside it.

    They are fields of fit, and hyperparameters that the dry build has not found.
    """
    rows = spec.search.space if spec.search is not None else ()
    beside = [row for row in rows if row.name.startswith(FIT) or is_addition(row.name, built.space)]
    values = spec.model.hyperparameters if isinstance(spec.model, CodeModel) else {}
    fixed = [
        FixedParameter(name=name, kind="fixed", value=value)
        for name, value in values.items()
        if is_addition(name, built.space) and name not in {row.name for row in beside}
    ]
    return (*built.space, *beside, *fixed)


def is_addition(name: str, declared: Space) -> bool:
    """Return whether a hyperparameter may be one that the dry build has not found: its name is no slip."""
    names = [parameter.name for parameter in declared]
    if name in names or name.startswith(FIT):
        return False
    # `unit` is a slip for `units`, and `units_3` is none for `units_2`.
    letters = DIGITS.sub("", name)
    others = {DIGITS.sub("", declared_name) for declared_name in names}
    return letters in others or not any(
        SequenceMatcher(None, letters, other).ratio() >= SLIP for other in others
    )


def warnings_of(spec: ExperimentSpec, built: BuiltModel) -> list[Problem]:
    """Return warnings of added hyperparameters, which the dry build has not found, and of later measures."""
    if not isinstance(spec.model, CodeModel):
        return []
    later = _not_measured(spec, built) if _may_validate_later(built) else ()
    listed = ", ".join(_measured(spec, built))
    measures_of_later = [
        warning(
            pointer,
            f"in one epoch of the dry build its fit measured {listed} and validated no rows, so a training "
            f"fails unless a later epoch has {name!r}",
            "Leave it if the fit validates later, else pass validation_data on to model.fit",
        )
        for pointer, name in later
    ]
    # The rows that were sent may be others than those of the whole space.
    rows = spec.search.space if spec.search is not None else ()
    places = [("/search/space", row.name) for row in rows]
    places += [(f"/model/hyperparameters/{escaped(name)}", name) for name in spec.model.hyperparameters]
    return measures_of_later + [
        warning(
            pointer,
            f"the dry build has not found {name!r}, so it has no effect unless the code asks for it",
            f"Leave it out if the code has no such hyperparameter; found are {_names(built.space)}",
        )
        for pointer, name in places
        if is_addition(name, built.space)
    ]


def _names(space: Space) -> str:
    return ", ".join(parameter.name for parameter in space) or "none"


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
