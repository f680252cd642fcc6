"""Declares a model template's description, which the form, the plan, the engine and the docs read."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from jobs.spec.base import Frozen
from jobs.spec.data.columns import TextEncode
from jobs.spec.data.profile import Profile, TemplateKind
from jobs.spec.sections.data import Task
from jobs.spec.templates.layers import Layer

OPTIMIZER_FIELDS = (
    "/fit/optimizer",
    "/fit/optimizer_args",
    "/fit/learning_rate",
    "/fit/schedule",
    "/fit/clipnorm",
    "/fit/clipvalue",
    "/fit/global_clipnorm",
    "/fit/ema",
)
"""Pointers to the fields that define how an optimizer changes weights."""


class NoArguments(Frozen):
    """The arguments for users' models: their own code declares them."""


class ProgramEngines(NamedTuple):
    """The dotted paths to the engine functions for a program that trains by itself.

    Attributes:
        training: runs it once.
        trials: runs it for a search's trials.
    """

    training: str
    trials: str


@dataclass(frozen=True)
class TemplateInfo:
    """One model template.

    Attributes:
        name: the value in `model.template`.
        label: the name for users.
        help: its purpose in a few words.
        arguments: all arguments with types, bounds and defaults; titles and descriptions label the form's
            fields.
        builder: the engine function that makes the layers, as `module:function`; imported when a model is
            built.
        assembly: the engine function that makes the whole model, from raw inputs to predictions; it replaces
            `builder`.
        preparation: the engine function that prepares a training in another way, likewise; it replaces
            `builder`.
        by_gradient: whether an optimizer trains its models by steps.
        own_names: whether user code names hyperparameters and metrics. If not, hyperparameters are named like
            arguments and fit fields.
        fit_prefix: the prefix before the names of searched fit fields; None if no fit field can be searched.
        is_hypermodel: whether KerasTuner builds its models. A spec has it as a `hypermodel`.
        is_listed: whether it is in the template table, so that a search can compare it with others.
        data_kinds: the data kinds that it accepts; one is enough.
        smallest_side: the fewest pixels that an image's height and width must have.
        refused_tasks: tasks for which it has no models, with the reason.
        texts: how text columns become numbers if the experiment does not choose it.
        reads_tokens: whether the builder reads texts' words in their order by `token_ids`. For other
            networks, the input contains the average of their vectors.
        shaping: arguments that affect which variables exist, or their shapes.
        ranges: a range to search for each argument, as a hyperparameter without its name.
        fit_ranges: ranges for the fit fields that a new experiment searches, likewise; without any, its
            learning rate has the form's range.
        searched: arguments that a new experiment searches.
        initial_arguments: arguments that a new experiment's spec contains, in this order.
        suits: whether to suggest it for given data; the first that suits is suggested.
        layers: returns the hidden layers without building them. None: the variables are known only after a
            model is built, so the plan has no memory estimate, and the worker checks the layout.
        width: an argument that may be larger than requested if the additional units stay 0; see
            `width_padding`.
        traced: arguments that are read by layers made with `Site.dropout`, and `head_penalty`. Trials that
            differ only in these share a compiled program.
        head_penalty: the argument with the L2 penalty on the output layer's kernel.
        most_inputs: with more inputs it takes too long to be tried unasked; None: never.
        slow: a sentence about its time without a GPU, for the plan.
        unused: pointers to spec sections and fields that have no effect on its models, with the reason. A
            spec that sets one to another value than its default is refused, and the form hides them.
        refused: pointers to steps that its models cannot take, with the reason.
        program: for a program that trains by itself: the engine functions that run its jobs. They replace
            those in the kind table, and need neither Keras nor JAX.
        needs_data: whether a spec must name a data set.
        no_rungs: why its trainings cannot wait when a rung ends; empty if they can.
    """

    name: str
    label: str
    help: str
    arguments: type[Frozen]
    builder: str = ""
    assembly: str = ""
    preparation: str = ""
    by_gradient: bool = True
    own_names: bool = False
    fit_prefix: str | None = ""
    is_hypermodel: bool = False
    is_listed: bool = True
    data_kinds: tuple[TemplateKind, ...] = ("vector", "image", "sequence")
    smallest_side: int = 1
    refused_tasks: Mapping[Task, str] = field(default_factory=dict)
    texts: TextEncode = "words"
    reads_tokens: bool = False
    shaping: frozenset[str] = frozenset()
    ranges: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    fit_ranges: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    searched: tuple[str, ...] = ()
    initial_arguments: tuple[str, ...] = ()
    suits: Callable[[Profile], bool] = lambda _: True
    layers: Callable[[Any, Profile], Iterable[Layer]] | None = None
    width: str = ""
    traced: frozenset[str] = frozenset()
    head_penalty: str = ""
    most_inputs: int | None = None
    slow: str = ""
    unused: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    program: ProgramEngines | None = None
    needs_data: bool = True
    no_rungs: str = ""

    @property
    def trains_itself(self) -> bool:
        """Return whether it is a program that trains by itself and is known only by its reports."""
        return self.program is not None

    def fit_field(self, hyperparameter: str) -> str | None:
        """Return the fit field's path, such as `schedule/kind`, that a hyperparameter may set.

        None: the code defines the name.
        """
        if self.fit_prefix is None or not hyperparameter.startswith(self.fit_prefix):
            return None
        return hyperparameter.removeprefix(self.fit_prefix)

    def uses(self, hyperparameter: str) -> bool:
        """Return whether a hyperparameter, such as the fit's `schedule/kind`, affects its models."""
        return self.why_unused(hyperparameter, self.unused) is None

    def why_unused(self, hyperparameter: str, unused: Mapping[str, str]) -> str | None:
        """Return why a hyperparameter sets a field without effect, or None if it does not.

        Args:
            hyperparameter: its name.
            unused: pointers to fields without effect, with the reason.
        """
        field = self.fit_field(hyperparameter)
        return None if field is None else unused.get(f"/fit/{field.partition('/')[0]}")

    def takes(self, profile: Profile) -> bool:
        """Return whether this template can build models for these data."""
        return self.takes_kind(profile) and self.refusal(profile) is None

    def takes_kind(self, profile: Profile) -> bool:
        """Return whether it accepts the kind of these data."""
        return not profile.kinds.isdisjoint(self.data_kinds)

    def refusal(self, profile: Profile) -> str | None:
        """Return why it has no models for such data: their task, or their images' size."""
        if (reason := self.refused_tasks.get(profile.task)) is not None:
            return f"{self.name} cannot be trained for {profile.task}, since {reason}"
        sides = profile.input_shape[:2]
        if profile.kind == "image" and min(sides) < self.smallest_side:
            least, size = self.smallest_side, " × ".join(map(str, sides))
            return (
                f"{self.name} needs images of at least {least} × {least} pixels, but these have {size}; "
                "upload a version with larger images, or use cnn"
            )
        return None
