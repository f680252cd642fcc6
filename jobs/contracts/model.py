"""Declares the section `model` of a spec: a template, a hypermodel of KerasTuner, or a script of a user."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Discriminator, Field, Tag, ValidationError, model_validator

from jobs.contracts.base import Argument, Frozen
from jobs.contracts.problems import message_of
from jobs.contracts.profile import Profile
from jobs.contracts.script_model import ScriptModel
from jobs.contracts.templates import TEMPLATES
from jobs.contracts.templates.info import TemplateInfo

if TYPE_CHECKING:
    TemplateName = str
    HypermodelName = str
else:
    # Computed from the registry, which a type checker cannot do.
    TemplateName = Literal[tuple(name for name, info in TEMPLATES.items() if not info.is_hypermodel)]
    HypermodelName = Literal[tuple(name for name, info in TEMPLATES.items() if info.is_hypermodel)]
NOT_AVAILABLE = ("code", "version")
"""Kinds of models that later releases will have."""


class _Model(Frozen):
    """An entry of the table of templates with its arguments; `resolved` adds the defaults."""

    named_by: ClassVar[str]
    """The field with the name of the entry."""

    if TYPE_CHECKING:
        # The classes below declare it, so that it is the last field of a dump.
        args: dict[str, Argument]

    @model_validator(mode="after")
    def _check_arguments(self) -> Self:
        try:
            self.resolved()
        except ValidationError as error:
            item = error.errors()[0]
            where = ".".join(str(part) for part in item["loc"])
            known = ", ".join(self.info.arguments.model_fields)
            message = f"{message_of(item)} (got {item.get('input')!r}); {self.info.name} takes {known}"
            raise ValueError(f"args.{where}: {message}") from error
        return self

    @property
    def info(self) -> TemplateInfo:
        """Return the entry in the registry."""
        raise NotImplementedError

    @property
    def code_digest(self) -> str | None:
        """Return the digest of the code of a user that the model needs; None for an entry of the table."""
        return None

    def refusal(self, profile: Profile) -> str | None:
        """Return why the model cannot be built for these data; None if it can."""
        if not self.info.takes_kind(profile):
            kinds = " or ".join(f"{kind}s" for kind in self.info.data_kinds)
            others = " or ".join(other.name for other in TEMPLATES.values() if other.takes(profile))
            refusal = f"{self.info.name} needs {kinds}, but the data are {profile.kind}s; use {others}"
            if profile.has_pipeline and "sequence" in self.info.data_kinds:
                return f"{refusal}. A table is read as sequences with data.window"
            return refusal
        return self.info.refusal(profile) or self._refusal_of_texts(profile)

    def _refusal_of_texts(self, profile: Profile) -> str | None:
        if profile.tokens and profile.kind == "sequence":
            return (
                f"the words of {profile.tokens[0].column!r} in their order cannot be read in windows; choose "
                "another encoding than tokens in data.texts or data.preprocessing"
            )
        if profile.tokens and not self.info.by_gradient:
            name = profile.tokens[0].column
            return (
                f"{self.info.name} cannot use the words of {name!r} in their order; choose another encoding "
                "than tokens in data.texts or data.preprocessing"
            )
        if self.info.reads_tokens and not profile.tokens:
            return (
                f"{self.info.name} reads the words of a text in their order, but no text is encoded as "
                "tokens: choose tokens in data.texts or data.preprocessing"
            )
        return None

    def resolved(self) -> Frozen:
        """Return the typed arguments, including defaults.

        Raises:
            pydantic.ValidationError: an argument is unknown or invalid.
        """
        return self.info.arguments.model_validate(self.args)


class TemplateModel(_Model):
    """A model template with its arguments."""

    named_by = "template"

    kind: Literal["template"] = "template"
    template: TemplateName
    args: dict[str, Argument] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _check_kind(cls, body: Any) -> Any:
        # Without this check, each field of the other kind would be an error of its own.
        if isinstance(body, dict) and body.get("kind") in NOT_AVAILABLE:
            raise ValueError(
                f"kind {body['kind']!r} is not available yet; use 'template', 'hypermodel' or 'script'"
            )
        return body

    @property
    def info(self) -> TemplateInfo:
        """Return the template's entry in the registry."""
        return TEMPLATES[self.template]


class Hypermodel(_Model):
    """A hypermodel of KerasTuner with its arguments, which are its hyperparameters."""

    named_by = "name"

    kind: Literal["hypermodel"]
    name: HypermodelName
    args: dict[str, Argument] = Field(default_factory=dict)

    @property
    def info(self) -> TemplateInfo:
        """Return the hypermodel's entry in the registry."""
        return TEMPLATES[self.name]


def _tag(body: Any) -> str:
    kind = body.get("kind") if isinstance(body, dict) else getattr(body, "kind", None)
    return {"hypermodel": "of KerasTuner", "script": "of a script"}.get(str(kind), "of a template")


# The tags are no names of fields, since problems leave out the parts of a place that the body does not have.
Model = Annotated[
    Annotated[TemplateModel, Tag("of a template")]
    | Annotated[Hypermodel, Tag("of KerasTuner")]
    | Annotated[ScriptModel, Tag("of a script")],
    Discriminator(_tag),
]
"""The section `model`."""


def model_json(name: str, args: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the section `model` of a spec for an entry of the table of templates.

    Args:
        name: of the entry. An unknown name is reported by the validation of the section.
        args: arguments of the model; None leaves them out.
    """
    is_hypermodel = name in TEMPLATES and TEMPLATES[name].is_hypermodel
    entry = {"kind": "hypermodel", "name": name} if is_hypermodel else {"kind": "template", "template": name}
    return entry if args is None else {**entry, "args": dict(args)}


def model_of(name: str) -> TemplateModel | Hypermodel:
    """Return the model of an entry of the table of templates, with its defaults."""
    info = TEMPLATES.get(name)
    kind = Hypermodel if info is not None and info.is_hypermodel else TemplateModel
    return kind.model_validate(model_json(name))
