"""Declares the model kind `version`: fine-tuning a registered version, which may be an imported file."""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from jobs.spec.base import Argument, Frozen
from jobs.spec.data.profile import Profile
from jobs.spec.sections.model_base import ModelBase
from jobs.spec.templates.info import TemplateInfo

NOTHING, ALL = "none", "all"
"""Values for `freeze_to` beside layer names."""
NAME = "^[-a-zA-Z0-9_]+$"
Head = Literal["keep", "new", "on_top"]


class FineTuneArgs(Frozen):
    """A version's weights → frozen up to a layer → a kept, new or additional head.

    The version defines the input, its normalization and the encoding of columns.
    """

    freeze_to: str = Field(
        default=NOTHING,
        min_length=1,
        max_length=500,
        title="Freeze up to",
        description="The last layer whose weights stay as they are; all layers before it are frozen too. "
        "none: no layer; all: every layer but the head.",
    )
    head: Head = Field(
        default="keep",
        title="Head",
        description="keep: the last layer with weights is trained further; new: it is replaced; on_top: a "
        "new head follows the version's outputs. Other classes or another task need a new head.",
    )
    learning_rate_factor: float = Field(
        default=0.1,
        gt=0,
        le=10,
        title="Learning rate factor",
        description="Times the learning rate, for the layers before the head that are not frozen. "
        "The head has the learning rate itself.",
    )


VERSION = TemplateInfo(
    name="version",
    label="A registered version",
    help="continues from the weights of a registered or imported model",
    arguments=FineTuneArgs,
    assembly="workers.engine.models.fine_tuning:fine_tuned",
    shaping=frozenset({"freeze_to", "head"}),
    ranges={
        "freeze_to": {"kind": "choice", "values": [NOTHING, ALL]},
        "head": {"kind": "choice", "values": ["keep", "new"]},
        "learning_rate_factor": {"kind": "float", "min": 0.01, "max": 1.0, "sampling": "log"},
    },
    searched=("learning_rate_factor",),
    initial_arguments=tuple(FineTuneArgs.model_fields),
    traced=frozenset({"learning_rate_factor"}),
    is_listed=False,
)
"""The description of fine-tuning, beside the template table."""


class VersionModel(ModelBase):
    """A registered version whose weights a training starts from.

    The digest is that of its file. It is filled in when a spec is saved or submitted, and an alias then
    becomes the number that it names, so a revision always trains from the same weights.
    """

    named_by = "model"

    kind: Literal["version"]
    model: str = Field(pattern=NAME, max_length=63, description="The name of the registered model.")
    number: int | None = Field(
        default=None, ge=1, description="Of the version; either it or `alias` is given."
    )
    alias: str | None = Field(
        default=None, pattern=NAME, max_length=63, description="An alias of the version."
    )
    digest: str | None = Field(
        default=None, pattern="^[0-9a-f]{64}$", description="The sha256 of the version's file, once pinned."
    )
    args: dict[str, Argument] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _move_freeze(cls, body: Any) -> Any:
        """Accept `freeze` beside `args` as short for `args.freeze_to`; true means all layers but the head."""
        if not isinstance(body, dict) or "freeze" not in body:
            return body
        rest = {name: value for name, value in body.items() if name != "freeze"}
        freeze = body["freeze"]
        if isinstance(freeze, bool):
            freeze = ALL if freeze else NOTHING
        args = rest.get("args", {})
        return {**rest, "args": {"freeze_to": freeze, **args}} if isinstance(args, dict) else rest

    @model_validator(mode="after")
    def _check_named_once(self) -> Self:
        if (self.number is None) == (self.alias is None):
            raise ValueError("give either the number of the version or an alias of the model")
        return self

    @property
    def info(self) -> TemplateInfo:
        """Describe fine-tuning."""
        return VERSION

    @property
    def weights_digest(self) -> str | None:
        """Return the version file's digest; None until it is pinned."""
        return self.digest

    def refusal(self, profile: Profile) -> str | None:  # noqa: ARG002
        """Return None: whether data fit is known from the version; see `fine_tuning.problems`."""
        return None

    def pinned(self, number: int, digest: str) -> Self:
        """Return the section with its version's number and digest."""
        return self.model_copy(update={"number": number, "alias": None, "digest": digest})
