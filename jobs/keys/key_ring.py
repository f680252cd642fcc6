"""Lets running processes learn a rotated secret key, without a restart.

The database names the key that signs. A process that has it as another one, or whose file has it meanwhile,
signs with it from then on.
"""

import datetime as dt
import logging
import threading
from pathlib import Path

from django.conf import settings
from django.utils.crypto import salted_hmac

from jobs.keys import secret_keys
from jobs.keys.secret_keys import FormerKey, SecretKeys

KEY_SALT = "trainyard.audit.key"
FOREVER = dt.datetime(9999, 1, 1, tzinfo=dt.UTC)

log = logging.getLogger(__name__)
_lock = threading.Lock()


def name_of_key(key: str | None = None) -> str:
    """Return a key's name, which does not reveal it; by default that of the one that signs."""
    return salted_hmac(KEY_SALT, "name", secret=key, algorithm="sha256").hexdigest()[:16]


def keys() -> SecretKeys:
    """Return the keys that this process has."""
    known: SecretKeys = settings.TRAINYARD_SECRET_KEYS
    # Tests replace the key alone.
    return known if known.present == settings.SECRET_KEY else SecretKeys(settings.SECRET_KEY)


def adopt(name: str) -> bool:
    """Sign with the key of this name. Return whether this process has it, or its file.

    A file that cannot be read changes nothing.
    """
    if not settings.TRAINYARD_HAS_KEY:
        return False
    if name == name_of_key():
        return True
    with _lock:
        for known in (_read_file(), keys()):
            if known is not None and name in map(name_of_key, known.all()):
                use(known if name == name_of_key(known.present) else _signing_with(known, name))
                log.info("the secret key %s is used from now on", name[:8])
                return True
    return False


def refresh() -> None:
    """Use the file's further keys, if it has the key that signs. Keys whose time is over verify no more."""
    if not settings.TRAINYARD_HAS_KEY:
        return
    with _lock:
        found = _read_file()
        present = keys()
        use(found if found is not None and found.present == present.present else present)


def decrypting() -> list[str]:
    """Return all keys of this process and of its file, if the file has the present one among them."""
    present, found = keys(), _read_file()
    if found is None or present.present not in found.all():
        return present.all()
    return list(dict.fromkeys([*present.all(), *found.all()]))


def use(known: SecretKeys) -> None:
    """Sign with the present one of these keys, and verify with the others."""
    settings.TRAINYARD_SECRET_KEYS = known
    settings.SECRET_KEY_FALLBACKS = known.verifying()
    settings.SECRET_KEY = known.present


def _signing_with(known: SecretKeys, name: str) -> SecretKeys:
    """Return the same keys with another present one; the others verify as long as this process runs."""
    by_name = {name_of_key(key): key for key in known.all()}
    times = {key.text: key.until for key in known.former}
    others = tuple(FormerKey(key, times.get(key, FOREVER)) for other, key in by_name.items() if other != name)
    return SecretKeys(by_name[name], former=others)


def _read_file() -> SecretKeys | None:
    try:
        return secret_keys.parse(Path(settings.TRAINYARD_SECRET_KEY_FILE).read_text())
    except (OSError, ValueError):
        return None
