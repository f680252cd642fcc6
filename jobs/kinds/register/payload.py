"""Defines the payload, the result and the task of a version's validation."""

from typing import Any, ClassVar, Literal

from pydantic import Field, ValidationError, field_validator

from jobs.kinds.base import Payload, Result
from jobs.messages.task import DatasetFile, InputPath, OptionalInputPath, Task
from jobs.spec.sections.mesh import MeshSpec
from jobs.spec.signature import Signature


class RegisterPayload(Payload):
    """The version to validate, and how.

    Attributes:
        version: its primary key.
        code: the digest of its code; None if it has none, or is validated without it.
        without_code: whether it is validated without its code.
        sample: the digest of the file with the sender's rows; None if there is none.
    """

    names_all_code: ClassVar[bool] = True

    version: int
    code: str | None = None
    without_code: bool = False
    sample: str | None = None

    def code_digest(self) -> str | None:
        """Return the digest of the code that the validation may execute."""
        return self.code


class RegisterResult(Result):
    """The model's signature, labels and size, which are stored in the version.

    Attributes:
        tried: which rows it was tried with.
        finding: a warning about its predictions for them; empty if there is none.
    """

    signature: dict[str, Any] | None = None
    class_labels: list[str] | None = None
    parameters: int | None = None
    keras_version: str = ""
    sample_rows: int | None = None
    tried: str = ""
    finding: str = ""
    needs_code: bool = False

    @field_validator("signature")
    @classmethod
    def _check_signature(cls, signature: dict[str, Any] | None) -> dict[str, Any] | None:
        # A process that has executed code of users may report anything.
        try:
            if signature:
                Signature.model_validate(signature)
        except ValidationError:
            raise ValueError("the signature is not that of a model") from None
        return signature


class RegisterTask(Task):
    """Load a model in a clean process, read its signature, and run it on sample rows."""

    kind: Literal["register"] = "register"
    model: InputPath
    digest: str
    foreign: bool = Field(
        default=False, description="uploaded by a person, or made by code of users: scan before Keras sees it"
    )
    dataset: DatasetFile | None = None
    class_labels: tuple[str, ...] | None = Field(
        default=None,
        description="those that its job reported, in the order of its outputs; None if they are unknown",
    )
    sample: OptionalInputPath = Field(default=None, description="rows of the person who uploaded the model")
    mesh: MeshSpec | None = Field(default=None, description="with which it was trained")

    def reads_foreign_file(self) -> bool:
        """Return whether it reads an upload."""
        return self.foreign
