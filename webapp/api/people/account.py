"""Operations on the caller."""

from django.http import HttpRequest
from ninja import Router

from jobs.actions.people.tokens import SCOPES
from jobs.answers.people.people import MeOut
from jobs.queries.people import people
from webapp.api.auth import caller, needs

router = Router()


@router.get("/me", response=MeOut, auth=needs(*SCOPES))
def get_me(request: HttpRequest) -> MeOut:
    """Return the person to whom the credentials belong. Any scope is enough."""
    who = caller(request)
    return people.caller_out(who.user, who.scopes)
