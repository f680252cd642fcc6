"""Signs releases with the installation's Ed25519 key. Prediction servers serve only signed releases.

The private key `release.key` is created in the home directory at first use, with mode 0600. Prediction
servers receive the public key `release.pub`.
"""

import base64
import hashlib
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from django.conf import settings
from django.db import connection

from jobs.atomic_files import create_once
from jobs.messages.release import Release, SignedRelease


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
    key = _private_key()
    return SignedRelease(
        release=release,
        signature=base64.b64encode(key.sign(release.signed_bytes())).decode(),
        key=_public_key_id(key),
    )


def key_id() -> str:
    """Return the name of the installation's key, which its releases carry."""
    return _public_key_id(_private_key())


def is_signed(signed: SignedRelease) -> bool:
    """Return whether the installation's key has signed the release as it is."""
    try:
        signature = base64.b64decode(signed.signature, validate=True)
        _private_key().public_key().verify(signature, signed.release.signed_bytes())
    except (InvalidSignature, ValueError):
        return False
    return True


def _public_key_id(key: Ed25519PrivateKey) -> str:
    raw = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return hashlib.sha256(raw).hexdigest()[:16]


def _private_key() -> Ed25519PrivateKey:
    path = private_key_file()
    try:
        pem = path.read_bytes()
    except FileNotFoundError:
        new = Ed25519PrivateKey.generate()
        create_once(path, new.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        # Read again: if another process created the file first, its key is the installation's key.
        pem = path.read_bytes()
    key = load_pem_private_key(pem, password=None)
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError(f"{path} contains a {type(key).__name__}, not an Ed25519 key")
    public = path.with_suffix(".pub")
    # Checked each time: a process may have ended after it created the first file.
    if not public.exists():
        create_once(public, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return key
