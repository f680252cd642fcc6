"""Declares the base class for all model kinds: a description, and arguments that fit it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import ValidationError, model_validator

from jobs.spec.base import Argument, Frozen
from jobs.spec.data.profile import Profile
from jobs.spec.problems import message_of
from jobs.spec.templates import TEMPLATES
from jobs.spec.templates.info import TemplateInfo


class ModelBase(Frozen):
    """A model with its arguments; `resolved` adds the defaults."""

    named_by: ClassVar[str]
    """The field that names the model within its kind."""

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
            arguments = ", ".join(self.info.arguments.model_fields)
            message = f"{message_of(item)} (got {item.get('input')!r}); {self.info.name} takes {arguments}"
            raise ValueError(f"args.{where}: {message}") from error
        return self

    @property
    def info(self) -> TemplateInfo:
        """Describe the model's kind."""
        raise NotImplementedError

    @property
    def code_digest(self) -> str | None:
        """Return the digest of the user code that the model needs, or None if it needs none."""
        return None

    @property
    def weights_digest(self) -> str | None:
        """Return the digest of the file with the initial weights, or None for new weights."""
        return None

    def with_args(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return the section as JSON with other arguments."""
        return {**self.model_dump(mode="json", exclude_none=True), "args": dict(args)}

    def refusal_of_name(self, name: str) -> str | None:
        """Return why a hyperparameter that user code reads cannot have this name, or None if it can."""
        del name
        return None

    def refusal(self, profile: Profile) -> str | None:
        """Return why the model cannot be built for these data, or None if it can."""
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
