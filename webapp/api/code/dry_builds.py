"""Operations on dry builds: a worker builds a model with users' code and reports its hyperparameters."""

from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field, ValidationError

from jobs import access
from jobs.actions.code import dry_builds as actions
from jobs.answers.code.code import DryBuildOut
from jobs.errors import BadInput
from jobs.models import CodeVersion
from jobs.queries.code import dry_builds as queries
from jobs.queries.code.dry_builds import DryBuildRequest
from jobs.queries.data import datasets
from jobs.spec.base import Argument, DocumentedAs
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.problems import Problem, problems
from jobs.spec.sections.data import DataSpec
from webapp.api.auth import actor
from webapp.api.idempotency import idempotent

router = Router(by_alias=True)


class DryBuildIn(Schema):
    """The entry, its constructor's arguments, and the data for which the model is built."""

    # Validated after the permission is checked, like `data`.
    entry: str = Field("", description="As `model.entry` of a spec; required.")
    args: dict[str, Argument] = Field({}, description="As `model.args` of a spec.")
    normalize: bool = Field(False, description="As `model.normalize` of a spec.")
    data: Annotated[Any, DocumentedAs(DataSpec)] = Field(
        default_factory=dict, description="As `data` of a spec; required."
    )
    project: str | None = Field(None, description="Of the code, if several projects have it.")
    again: bool = Field(False, description="Whether to repeat a dry build that has failed.")


@router.post("/code/{code}/dry-builds", response={202: DryBuildOut})
@idempotent
def request_dry_build(request: HttpRequest, code: str, body: DryBuildIn) -> Status[DryBuildOut]:
    """Have a worker build the code's model, and return the findings so far.

    The same request returns the state and then the result: each is built once for one data shape.
    """
    user = actor(request)
    home = access.get_project(user, body.project) if body.project else None
    version = access.get_code(user, code, home, access.Action.RUN_CODE)
    dry_build = _read_request(version, body)
    try:
        actions.request_dry_build(dry_build, by=user, again=body.again)
    except BadInput as error:
        raise BadInput(error.message, [_pointer_in_body(problem) for problem in error.problems]) from error
    return Status(202, queries.dry_build_out(dry_build))


def _read_request(version: CodeVersion, body: DryBuildIn) -> DryBuildRequest:
    model = {
        "kind": "code",
        "digest": version.digest,
        "entry": body.entry,
        "args": body.args,
        "normalize": body.normalize,
    }
    sent = {"version": 1, "data": body.data, "model": model}
    try:
        spec = ExperimentSpec.model_validate(sent)
    except ValidationError as error:
        invalid = [_pointer_in_body(problem) for problem in problems(error, sent)]
        raise BadInput(invalid[0].message, invalid) from error
    required = spec.required_data
    data = datasets.find_version(version.project, required.dataset, required.dataset_version)
    profile = data.profile if data is not None else None
    if data is None or profile is None:
        message = f"{version.project.slug} has no data set {required.dataset!r} that is ready"
        raise BadInput(message, [Problem("/data/dataset", message)])
    return queries.dry_build_request(version.project, spec, data, profile)


def _pointer_in_body(problem: Problem) -> Problem:
    return Problem(problem.pointer.removeprefix("/model"), problem.message)
