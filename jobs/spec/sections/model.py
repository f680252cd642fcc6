"""Declares the spec section `model`: a template, a hypermodel, a version, code or a script."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from jobs.spec.base import Argument
from jobs.spec.sections.code_model import CodeModel
from jobs.spec.sections.model_base import ModelBase
from jobs.spec.sections.script_model import ScriptModel
from jobs.spec.sections.version_model import VersionModel
from jobs.spec.templates import TEMPLATES
from jobs.spec.templates.info import TemplateInfo

if TYPE_CHECKING:
    TemplateName = str
    HypermodelName = str
else:
    # Computed from the registry, which a type checker cannot do.
    TemplateName = Literal[tuple(name for name, info in TEMPLATES.items() if not info.is_hypermodel)]
    HypermodelName = Literal[tuple(name for name, info in TEMPLATES.items() if info.is_hypermodel)]


class TemplateModel(ModelBase):
    """A model template with its arguments."""

    named_by = "template"

    kind: Literal["template"] = "template"
    template: TemplateName
    args: dict[str, Argument] = Field(default_factory=dict)

    @property
    def info(self) -> TemplateInfo:
        """Return the template's entry in the registry."""
        return TEMPLATES[self.template]


class Hypermodel(ModelBase):
    """A hypermodel of KerasTuner with its arguments, which are its hyperparameters."""

    named_by = "name"

    kind: Literal["hypermodel"]
    name: HypermodelName
    args: dict[str, Argument] = Field(default_factory=dict)

    @property
    def info(self) -> TemplateInfo:
        """Return the hypermodel's entry in the registry."""
        return TEMPLATES[self.name]


TAGS = {
    "hypermodel": "of KerasTuner",
    "version": "of a version",
    "code": "of own code",
    "script": "of a script",
}
"""Tags for the kinds other than templates.

They are not field names, since problems leave out the parts of a path that the body does not have.
"""


def _tag(body: Any) -> str:
    kind = body.get("kind") if isinstance(body, dict) else getattr(body, "kind", None)
    return TAGS.get(kind, "of a template") if isinstance(kind, str) else "of a template"


Model = Annotated[
    Annotated[TemplateModel, Tag("of a template")]
    | Annotated[Hypermodel, Tag("of KerasTuner")]
    | Annotated[VersionModel, Tag("of a version")]
    | Annotated[CodeModel, Tag("of own code")]
    | Annotated[ScriptModel, Tag("of a script")],
    Discriminator(_tag),
]
"""The section `model`."""


def needs_no_data(body: Any) -> bool:
    """Return whether a section `model`, which may be invalid, has a kind that needs no data set."""
    return _tag(body) == TAGS["script"]


def is_own_code(body: Any) -> bool:
    """Return whether a section `model`, which may be invalid, names own code that builds the model."""
    return _tag(body) == TAGS["code"]


def model_json(name: str, args: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the section `model` for a template.

    Args:
        name: the template's name. An unknown name is reported by the section's validation.
        args: the model's arguments; None leaves them out.
    """
    is_hypermodel = name in TEMPLATES and TEMPLATES[name].is_hypermodel
    entry = {"kind": "hypermodel", "name": name} if is_hypermodel else {"kind": "template", "template": name}
    return entry if args is None else {**entry, "args": dict(args)}


def model_of(name: str) -> ModelBase:
    """Build a template's section `model` with its defaults."""
    info = TEMPLATES.get(name)
    kind = Hypermodel if info is not None and info.is_hypermodel else TemplateModel
    return kind.model_validate(model_json(name))
