"""Search spaces of other tools: read into ours, written as KerasTuner's. Stores nothing."""

from typing import Any, Literal

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field, TypeAdapter, ValidationError

from jobs.contracts.formats import importing, keras_tuner
from jobs.contracts.formats.made import MOST, Format
from jobs.contracts.formats.reading import Refused
from jobs.contracts.formats.text import LONGEST
from jobs.contracts.problems import Problem, problems
from jobs.contracts.search_space import Space, faults
from jobs.contracts.summary import Line
from jobs.errors import BadInput
from webapp.api.shapes import In, Json

router = Router()
_SPACES: TypeAdapter[Space] = TypeAdapter(Space)


class ImportIn(In):
    """A file's text; its format is recognized if absent."""

    text: str = Field(
        max_length=LONGEST, examples=["method: random\nparameters: {units: {values: [16, 32]}}"]
    )
    format: Format | None = None


class ImportOut(Schema):
    """Parts of an experiment's `search`, its space in words, and what was left out or written differently."""

    format: Format
    search: Json
    summary: list[Line]
    notes: list[str]


class ExportIn(In):
    """A `search.space` of ours, and the format wanted."""

    space: list[Any] = Field(max_length=MOST)
    format: Literal["keras_tuner"] = "keras_tuner"


class ExportOut(Schema):
    """What `keras_tuner.HyperParameters.from_config` takes."""

    format: Literal["keras_tuner"]
    config: Json


@router.post("/search-spaces/import", response=ImportOut)
def import_space(request: HttpRequest, body: ImportIn) -> Json:  # noqa: ARG001
    """Read a search space of KerasTuner, Vertex AI, Katib, W&B or Optuna, without loss or not at all.

    What has no exact counterpart is a 422 whose pointers go on from `/text` into the text.
    """
    try:
        found = importing.read(body.text, body.format)
    except Refused as refused:
        told = [Problem(f"/text{problem.pointer}", problem.message) for problem in refused.problems]
        raise BadInput(f"The text is not taken: {_summary(told)}", told) from refused
    return found.model_dump(mode="json")


@router.post("/search-spaces/export", response=ExportOut)
def export_space(request: HttpRequest, body: ExportIn) -> Json:  # noqa: ARG001
    """Write a search space as KerasTuner's JSON."""
    try:
        space = _SPACES.validate_python(body.space)
    except ValidationError as error:
        told = problems(error, body.space, "/space")
        raise BadInput(f"The space does not hold: {_summary(told)}", told) from error
    if told := [Problem(f"/space/{where.replace('.', '/')}", message) for where, message in faults(space)]:
        raise BadInput(f"The space does not hold: {_summary(told)}", told)
    return {"format": body.format, "config": keras_tuner.write(space)}


def _summary(told: list[Problem]) -> str:
    more = f" (and {len(told) - 1} more)" if len(told) > 1 else ""
    return f"{told[0].pointer}: {told[0].message}{more}"
