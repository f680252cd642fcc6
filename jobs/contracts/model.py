"""Declares the section `model` of a spec: a template with its arguments."""

from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from jobs.contracts.base import Argument, Frozen
from jobs.contracts.problems import message_of
from jobs.contracts.profile import Profile
from jobs.contracts.templates import TEMPLATES
from jobs.contracts.templates.info import TemplateInfo

if TYPE_CHECKING:
    TemplateName = str
else:
    # Computed from the registry, which a type checker cannot do.
    TemplateName = Literal[tuple(TEMPLATES)]
NOT_AVAILABLE = ("code", "hypermodel", "version", "script")
"""Kinds of models that later releases will have."""


class TemplateModel(Frozen):
    """A model template with its arguments; `resolved` adds the defaults."""

    kind: Literal["template"] = "template"
    template: TemplateName
    args: dict[str, Argument] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _check_kind(cls, body: Any) -> Any:
        # Without this check, each field of the other kind would be an error of its own.
        if isinstance(body, dict) and body.get("kind") in NOT_AVAILABLE:
            raise ValueError(f"kind {body['kind']!r} is not available yet; use 'template'")
        return body

    @model_validator(mode="after")
    def _check_arguments(self) -> Self:
        try:
            self.resolved()
        except ValidationError as error:
            item = error.errors()[0]
            where = ".".join(str(part) for part in item["loc"])
            known = ", ".join(self.info.arguments.model_fields)
            raise ValueError(
                f"args.{where}: {message_of(item)} (got {item.get('input')!r}); {self.template} takes {known}"
            ) from error
        return self

    @property
    def info(self) -> TemplateInfo:
        """Return the template's entry in the registry."""
        return TEMPLATES[self.template]

    def refusal(self, profile: Profile) -> str | None:
        """Return why the template cannot be built for these data; None if it can."""
        if self.info.takes(profile):
            return None
        kinds = " or ".join(f"{kind}s" for kind in self.info.data_kinds)
        others = " or ".join(other.name for other in TEMPLATES.values() if other.takes(profile))
        return f"{self.template} needs {kinds}, but the data are {profile.kind}s; use {others}"

    def resolved(self) -> Frozen:
        """Return the typed arguments of the template, including defaults.

        Raises:
            pydantic.ValidationError: an argument is unknown or invalid.
        """
        return self.info.arguments.model_validate(self.args)
