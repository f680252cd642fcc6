"""Operations on projects' credentials. Their secrets are only written."""

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status

from jobs import access
from jobs.access import Action
from jobs.actions.data import credentials as actions
from jobs.answers.data.credentials import CredentialOut
from jobs.queries.data import credentials as queries
from webapp.api.auth import actor
from webapp.api.media import JsonParser
from webapp.api.paging import Page, Paging, paginate

router = Router()
BY_NAME = {"name": "name", "created": "created"}
BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/CredentialIn"}}},
    }
}


@router.get("/projects/{slug}/credentials", response=Page[CredentialOut])
def list_credentials(request: HttpRequest, slug: str, paging: Query[Paging]) -> Page[CredentialOut]:
    """List a project's credentials, without their secrets."""
    project = access.get_project(actor(request), slug, Action.WRITE)
    rows = queries.credentials_of_project(project)
    return paginate(Page[CredentialOut], rows, paging, queries.credential_out, sorts=BY_NAME, default="name")


@router.put(
    "/projects/{slug}/credentials/{name}",
    response={200: CredentialOut, 201: CredentialOut},
    openapi_extra=BODY,
)
def save_credential(request: HttpRequest, slug: str, name: str) -> Status[CredentialOut]:
    """Save a credential. One with the same name is overwritten. For the project's admins."""
    project = access.get_project(actor(request), slug, Action.MANAGE)
    # Not as a typed body: its error messages would repeat a wrong secret.
    credential = actions.parse_credential(JsonParser().parse_body(request))
    is_new = not queries.credentials_of_project(project).filter(name=name).exists()
    saved = actions.save(project, name, credential, by=actor(request))
    return Status(201 if is_new else 200, queries.credential_out(saved))


@router.delete("/projects/{slug}/credentials/{name}", response={204: None})
def delete_credential(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """Delete a credential. It cannot be restored. For the project's admins."""
    project = access.get_project(actor(request), slug, Action.MANAGE)
    actions.delete(project, name, by=actor(request))
    return HttpResponse(status=204)
