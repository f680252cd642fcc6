"""Operations on the data that own code loads: a worker calls its function, and a data set gets the rows."""

from django.http import HttpRequest
from ninja import Router, Status
from pydantic import Field

from jobs import access
from jobs.actions.data import code_data as actions
from jobs.answers.code.code import CodeDataListOut, CodeDataOut
from jobs.queries.data import code_data as queries
from webapp.api.auth import actor
from webapp.api.idempotency import idempotent
from webapp.api.shapes import In

router = Router(by_alias=True)


class CodeDataIn(In):
    """The data set that gets the rows, and the function that loads them."""

    # Validated after the permission is checked.
    dataset: str = Field(
        "", description="A name as for a new data set; an existing one gets a version. Required."
    )
    entry: str = Field("load_data", description="`path:load_data` if several files have one.")
    task: str = Field("", description="Kind of prediction, as of a data set; empty: as the targets suggest.")
    project: str | None = Field(None, description="Of the code, if several projects have it.")
    again: bool = Field(False, description="Whether to load again after an earlier job has ended.")


@router.post("/code/{code}/data", response={202: CodeDataOut})
@idempotent
def load_code_data(request: HttpRequest, code: str, body: CodeDataIn) -> Status[CodeDataOut]:
    """Have a worker call the code's `load_data` in a sandbox, and make a data set version from its rows.

    The same request returns the state and then the version's number, unless `again` is true.
    """
    user = actor(request)
    home = access.get_project(user, body.project) if body.project else None
    version = access.get_code(user, code, home, access.Action.RUN_CODE)
    job = actions.request_loading(
        version, dataset=body.dataset, entry=body.entry, task=body.task, by=user, again=body.again
    )
    return Status(202, queries.code_data_out([job])[0])


@router.get("/code/{code}/data", response=CodeDataListOut)
def list_code_data(request: HttpRequest, code: str, project: str | None = None) -> CodeDataListOut:
    """List a code version's newest loads, with the data set versions that they made."""
    user = actor(request)
    home = access.get_project(user, project) if project else None
    version = access.get_code(user, code, home)
    return CodeDataListOut(items=queries.newest_code_data(version))
