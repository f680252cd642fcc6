"""Converts search spaces from and to other tools' formats. Stores nothing."""

from typing import Annotated, Literal

from django.http import HttpRequest
from ninja import Router
from pydantic import Field, TypeAdapter, ValidationError

from jobs.answers.experiments.search_spaces import ExportedSpaceOut, ImportedSpaceOut
from jobs.errors import BadInput
from jobs.spec.base import DocumentedAs
from jobs.spec.checks import sizes as spec_sizes
from jobs.spec.formats import importing, keras_tuner
from jobs.spec.formats.reading import FormatError
from jobs.spec.formats.result import MAX_HYPERPARAMETERS, Format
from jobs.spec.formats.text import MAX_CHARACTERS
from jobs.spec.json_types import JsonObject
from jobs.spec.problems import Problem, problems
from jobs.spec.space.search_space import Parameter, Space, space_errors
from webapp.api.shapes import In

router = Router()
_SPACES: TypeAdapter[Space] = TypeAdapter(Space)


class ImportIn(In):
    """A file's text."""

    text: str = Field(
        max_length=MAX_CHARACTERS, examples=["method: random\nparameters: {units: {values: [16, 32]}}"]
    )
    format: Format | None = Field(None, description="Detected from the text if it is null.")


class ExportIn(In):
    """A `search.space` and the format to convert it to."""

    space: list[Annotated[JsonObject, DocumentedAs(Parameter)]] = Field(
        max_length=MAX_HYPERPARAMETERS, description="The rows of a spec's `search.space`."
    )
    format: Literal["keras_tuner"] = "keras_tuner"


@router.post("/search-spaces/import", response=ImportedSpaceOut)
def import_space(request: HttpRequest, body: ImportIn) -> ImportedSpaceOut:  # noqa: ARG001
    """Read a search space from KerasTuner, Vertex AI, Katib, W&B or Optuna.

    A part without an exact counterpart is a 422. Pointers start with `/text` and continue inside the text.
    """
    try:
        imported = importing.read(body.text, body.format)
    except FormatError as error:
        errors = [Problem(f"/text{problem.pointer}", problem.message) for problem in error.problems]
        raise BadInput(f"The text cannot be imported: {_summarize_errors(errors)}", errors) from error
    return ImportedSpaceOut(
        format=imported.format,
        search=imported.search,
        summary=list(imported.summary),
        notes=list(imported.notes),
    )


@router.post("/search-spaces/export", response=ExportedSpaceOut)
def export_space(request: HttpRequest, body: ExportIn) -> ExportedSpaceOut:  # noqa: ARG001
    """Convert a search space to KerasTuner's JSON."""
    if (too_long := spec_sizes.text_problem(body.space)) is not None:
        raise _invalid_space([Problem("/space", too_long.message)])
    try:
        space = _SPACES.validate_python(body.space)
    except ValidationError as error:
        raise _invalid_space(problems(error, body.space, "/space")) from error
    # Before the conditions are checked, which takes time for each of their values.
    if too_large := list(spec_sizes.space_problems(space, "/space")):
        raise _invalid_space(too_large)
    if errors := [
        Problem(f"/space/{where.replace('.', '/')}", message) for where, message in space_errors(space)
    ]:
        raise _invalid_space(errors)
    return ExportedSpaceOut(format=body.format, config=keras_tuner.write(space))


def _invalid_space(errors: list[Problem]) -> BadInput:
    return BadInput(f"The space is invalid: {_summarize_errors(errors)}", errors)


def _summarize_errors(errors: list[Problem]) -> str:
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{errors[0].pointer}: {errors[0].message}{more}"
