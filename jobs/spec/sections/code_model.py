"""Declares a model that user code builds: `build_model(hp)` or a KerasTuner HyperModel class."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from jobs.spec.base import Argument, Frozen
from jobs.spec.data.profile import Profile
from jobs.spec.sections.model_base import ModelBase
from jobs.spec.space.hyperparameters import Value
from jobs.spec.templates.info import OPTIMIZER_FIELDS, NoArguments, TemplateInfo

CODE_ENTRIES = ("build_model", "hypermodel")
"""The entry kinds that build models."""
ENTRY = r"^([^:]{1,300}:)?[A-Za-z_]\w{0,199}(\.[A-Za-z_]\w*)?$"
"""An entry's name, such as `Class.method`; after its file's path and a colon if several files have it."""
MAX_ENTRY = 700
MAX_ARGUMENTS = 100

FIT = "fit/"
"""The prefix before the names of searched `fit` fields. All other hyperparameters belong to the code."""

_BUILT = "the code builds the model"
MEASURES = ("/fit/loss", "/fit/metrics")
"""Fields with the measures of validation rows."""
COMPILED: Mapping[str, str] = dict.fromkeys(
    (*OPTIMIZER_FIELDS, *MEASURES, "/precision/loss_scale"), "the code compiles its model"
)
"""Fields without effect on a model that its code compiles, with the reason."""
OWN_FIT: Mapping[str, str] = dict.fromkeys(
    (*COMPILED, "/fit/steps_per_execution", "/fit/class_weights"), "the class trains the model by its own fit"
)
"""Fields without effect if the model's class trains it by its own `fit`, with the reason."""
FIT_ARGUMENTS = ("batch_size", "epochs", "shuffle")
"""Fields that are arguments of a class's own `fit`, which may set them itself."""
ONE_CALL: Mapping[str, str] = {"/fit/steps_per_execution": "one call of Keras' fit trains the model"}
"""Fields without effect on a model that one call of Keras' `fit` trains, with the reason."""


CODE = TemplateInfo(
    name="code",
    label="Own code",
    help="a function build_model(hp) or a HyperModel class of KerasTuner",
    arguments=NoArguments,
    preparation="workers.engine.training.own_code:prepare_code",
    own_names=True,
    fit_prefix=FIT,
    unused={
        "/precision/overrides": f"{_BUILT} and names its layers: give them dtype there",
        "/fit/augmentation": f"{_BUILT}: add layers such as keras.layers.RandomFlip there",
    },
)
"""The description for all models built by code. Their entry takes the place of the name."""


class CodeModel(ModelBase):
    """A model that an entry of a version of code builds.

    Attributes:
        digest: of the version of code.
        entry: a function that takes hyperparameters, a HyperModel class, or `Class.method`; after a path and
            a colon if several files have one of this name.
        args: of the constructor of the class.
        hyperparameters: values of hyperparameters that the code declares; others have the code's defaults.
        normalize: whether the code gets rows that are normalized as for templates.
    """

    named_by = "entry"

    kind: Literal["code"]
    digest: str = Field(pattern=r"^[0-9a-f]{64}$", description="of a version of code")
    entry: str = Field(
        pattern=ENTRY,
        max_length=MAX_ENTRY,
        description=(
            "a function that takes hp, a HyperModel class, or a method as Class.method; path:name if several "
            "files have this name"
        ),
    )
    args: Annotated[dict[str, Argument], Field(max_length=MAX_ARGUMENTS)] = Field(
        default_factory=dict, description="of the constructor of a HyperModel class"
    )
    hyperparameters: Annotated[dict[str, Value], Field(max_length=200)] = Field(
        default_factory=dict,
        description="values of hyperparameters that the code declares; others have its defaults",
    )
    # Left out where it is off, so the digests of specs and the keys of dry builds without it stay the same.
    normalize: bool = Field(
        default=False,
        exclude_if=lambda value: not value,
        description=(
            "whether a layer before the code's model normalizes the numbers of the rows by the mean and the "
            "deviation of the training rows, as for templates"
        ),
    )

    @property
    def info(self) -> TemplateInfo:
        """Describe a model from own code under its entry's name."""
        return replace(CODE, name=self.entry)

    @property
    def code_digest(self) -> str | None:
        """Return the digest of the code version that builds the model."""
        return self.digest

    @property
    def name(self) -> str:
        """Return the function's or class's name."""
        return self.entry.rpartition(":")[2]

    @property
    def path(self) -> str:
        """Return its file's path in the version; empty if the entry does not name one."""
        return self.entry.rpartition(":")[0]

    def refusal(self, profile: Profile) -> str | None:
        """Return None: only a dry build shows whether the model fits the data."""
        del profile
        return None

    def resolved(self) -> Frozen:
        """Return the model itself: its code has the defaults."""
        return self
