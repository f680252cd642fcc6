"""Encrypts the secrets of second factors again, after the secret key was rotated."""

from django.apps import apps

from jobs.keys import sealing

PURPOSE = "second-factor"
SEALED = "sealed:"
"""Begins a secret that is encrypted. Earlier versions did not encrypt it."""


def reseal_all() -> int:
    """Encrypt all second factors with the present secret key. Return how many cannot be decrypted."""
    lost = 0
    rows = apps.get_model("mfa", "Authenticator").objects.select_for_update()
    for row in rows.order_by("pk"):
        try:
            row.data = {name: _reseal(value) for name, value in row.data.items()}
        except sealing.Unreadable:
            lost += 1
        else:
            row.save(update_fields=["data"])
    return lost


def _reseal(value: object) -> object:
    if isinstance(value, list):
        return [_reseal(one) for one in value]
    if not isinstance(value, str) or not value.startswith(SEALED):
        return value
    return SEALED + sealing.reseal(value.removeprefix(SEALED), PURPOSE)
