"""Signs releases with the installation's Ed25519 key. Prediction servers serve only signed releases.

The private key `release.key` is created in the home directory at first use, with mode 0600. Prediction
servers receive the public key `release.pub`. While the key is rotated, this file has several: the present
one, then the next one and former ones; `release.next.key` is the next private key.
"""

import base64
import hashlib
from collections.abc import Iterable
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from django.conf import settings
from django.db import connection

from jobs.atomic_files import create_once, replace_file
from jobs.messages.release import Release, SignedRelease
from jobs.messages.release_keys import public_keys_in


def private_key_file() -> Path:
    """Return the private key's path."""
    return Path(settings.TRAINYARD_HOME) / "release.key"


def public_key_file() -> Path:
    """Return the public key's path; create both keys if they do not exist."""
    _private_key()
    return private_key_file().with_suffix(".pub")


def missing_key() -> str | None:
    """Return why a key must be copied to this machine before it signs releases; None if it need not.

    Only the part that prepares the database makes a key. Prediction servers trust one: they would refuse
    releases signed with a key that another machine made for itself.
    """
    path = private_key_file()
    if connection.vendor == "sqlite" or path.exists():
        return None
    return (
        f"The key that signs releases, {path}, is missing: copy release.key from the home of the first web "
        "server. If this is the first one, or the key is lost, start it with --migrate, which makes a key; "
        "prediction servers then need its release.pub."
    )


def sign(release: Release) -> SignedRelease:
    """Return `release` with its signature."""
    return _signed(release, _private_key())


def key_id() -> str:
    """Return the name of the installation's key, which its releases carry."""
    return _public_key_id(_private_key().public_key())


def is_signed(signed: SignedRelease) -> bool:
    """Return whether a key of the installation has signed the release as it is."""
    return any(_verifies(key, signed) for key in _trusted_keys())


def known_keys() -> set[str]:
    """Return the names of all keys whose releases can be verified."""
    return {_public_key_id(key) for key in _trusted_keys()}


def prepare_next() -> str:
    """Make the next key, unless there is one, and let the public file name it. Return its name."""
    next_file = _next_file()
    if not next_file.exists():
        create_once(next_file, _pem_of(Ed25519PrivateKey.generate()))
    following = _read_private(next_file).public_key()
    present = _private_key().public_key()
    _write_trusted([present, following, *_trusted_keys()])
    return _public_key_id(following)


def use_next() -> str:
    """Sign with the next key from now on. The present one is trusted still. Return the next one's name."""
    name = prepare_next()
    pem = _next_file().read_bytes()
    replace_file(private_key_file(), pem)
    _next_file().unlink()
    _write_trusted([_private_key().public_key(), *_trusted_keys()])
    return name


def former_keys() -> set[str]:
    """Return the names of trusted keys that sign no more."""
    return known_keys() - {_public_key_id(key) for key in _signing_keys()}


def forget_former() -> None:
    """Trust the present key alone, and the next one if there is one."""
    _write_trusted(_signing_keys())


def _signing_keys() -> list[Ed25519PublicKey]:
    files = [file for file in (private_key_file(), _next_file()) if file.exists()]
    return [_read_private(file).public_key() for file in files]


def sign_with_next(release: Release) -> SignedRelease:
    """Return `release` with the signature of the next key, or of the present one if there is no next one."""
    key = _read_private(_next_file()) if _next_file().exists() else _private_key()
    return _signed(release, key)


def _signed(release: Release, key: Ed25519PrivateKey) -> SignedRelease:
    return SignedRelease(
        release=release,
        signature=base64.b64encode(key.sign(release.signed_bytes())).decode(),
        key=_public_key_id(key.public_key()),
    )


def _verifies(key: Ed25519PublicKey, signed: SignedRelease) -> bool:
    try:
        key.verify(base64.b64decode(signed.signature, validate=True), signed.release.signed_bytes())
    except (InvalidSignature, ValueError):
        return False
    return True


def _public_key_id(key: Ed25519PublicKey) -> str:
    raw = key.public_bytes(Encoding.Raw, PublicFormat.Raw)
    return hashlib.sha256(raw).hexdigest()[:16]


def _trusted_keys() -> list[Ed25519PublicKey]:
    return public_keys_in(public_key_file().read_bytes())


def _write_trusted(keys: Iterable[Ed25519PublicKey]) -> None:
    # Each one once, in this order.
    pems = {_public_key_id(key): _public_pem(key) for key in keys}
    replace_file(private_key_file().with_suffix(".pub"), b"".join(pems.values()))


def _public_pem(key: Ed25519PublicKey) -> bytes:
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def _pem_of(key: Ed25519PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _next_file() -> Path:
    return private_key_file().with_name("release.next.key")


def _private_key() -> Ed25519PrivateKey:
    path = private_key_file()
    if not path.exists():
        # Read afterwards: if another process created the file first, its key is the installation's key.
        create_once(path, _pem_of(Ed25519PrivateKey.generate()))
    key = _read_private(path)
    public = path.with_suffix(".pub")
    # Checked each time: a process may have ended after it created the first file.
    if not public.exists():
        create_once(public, _public_pem(key.public_key()))
    return key


def _read_private(path: Path) -> Ed25519PrivateKey:
    key = load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError(f"{path} contains a {type(key).__name__}, not an Ed25519 key")
    return key
