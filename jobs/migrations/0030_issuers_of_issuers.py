"""Copies the one issuer of each login to the list of all, with the issuers of that person's password."""

from typing import Any

from django.db import migrations


def copy_issuers(apps: Any, schema_editor: Any) -> None:
    """Fill the lists. Whose password an issuer had when a link was made is unknown: the present one counts."""
    user, link, token, request = (
        apps.get_model("jobs", name) for name in ("User", "LoginLink", "ApiToken", "PromotionRequest")
    )
    direct = dict(user.objects.exclude(password_issuer=None).values_list("pk", "password_issuer"))
    for row in user.objects.filter(pk__in=direct).only("pk", "password_issuer"):
        row.password_issuers.set(_all(row.password_issuer_id, direct, owner=row.pk))
    for row in link.objects.exclude(issuer=None).only("pk", "user", "issuer"):
        row.issuers = _all(row.issuer_id, direct, owner=row.user_id)
        row.save(update_fields=["issuers"])
    for row in token.objects.exclude(login_issuer=None).only("pk", "user", "login_issuer"):
        row.login_issuers = _all(row.login_issuer_id, direct, owner=row.user_id)
        row.save(update_fields=["login_issuers"])
    for row in request.objects.exclude(requested_by_issuer=None).only(
        "pk", "requested_by", "requested_by_issuer"
    ):
        row.requested_by_issuers.set(_all(row.requested_by_issuer_id, direct, owner=row.requested_by_id))


def _all(issuer: int, direct: dict[int, int], *, owner: int) -> list[int]:
    found: set[int] = set()
    following: int | None = issuer
    while following is not None and following not in found:
        found.add(following)
        following = direct.get(following)
    return sorted(found - {owner})


class Migration(migrations.Migration):
    dependencies = [("jobs", "0029_all_issuers")]

    operations = [migrations.RunPython(copy_issuers, migrations.RunPython.noop, elidable=True)]
