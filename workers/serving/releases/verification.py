"""Verifies Ed25519 signatures on releases."""

import base64
import binascii
import hashlib

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

from jobs.messages.release import Release, SignedRelease


class ReleaseRefused(Exception):
    """The release must not be applied; the current one stays in effect."""


class ReleaseVerifier:
    """Verifies signed releases against one public key."""

    def __init__(self, key: Ed25519PublicKey) -> None:
        self._key = key
        raw = key.public_bytes(Encoding.Raw, PublicFormat.Raw)
        self.key_id = hashlib.sha256(raw).hexdigest()[:16]

    @classmethod
    def from_text(cls, text: bytes) -> "ReleaseVerifier":
        """Read a public key, PEM or base64 of its 32 bytes.

        Raises:
            ValueError: it is neither, or not an Ed25519 key.
        """
        if text.lstrip().startswith(b"-----"):
            key = load_pem_public_key(text)
            if not isinstance(key, Ed25519PublicKey):
                raise ValueError("the public key is not an Ed25519 key")
            return cls(key)
        try:
            return cls(Ed25519PublicKey.from_public_bytes(base64.b64decode(text.strip(), validate=True)))
        except (binascii.Error, ValueError):
            raise ValueError("the public key is neither PEM nor base64 of 32 bytes") from None

    def verify(self, signed: SignedRelease) -> Release:
        """Return the release if its signature is valid and it describes every version it names.

        Raises:
            ReleaseRefused: it does not.
        """
        try:
            signature = base64.b64decode(signed.signature, validate=True)
            self._key.verify(signature, signed.release.signed_bytes())
        except (InvalidSignature, binascii.Error, ValueError):
            raise ReleaseRefused(
                f"the signature of generation {signed.release.generation} is not valid "
                f"(signed with key {signed.key}, the trusted key is {self.key_id})"
            ) from None
        return _check_complete(signed.release)


def _check_complete(release: Release) -> Release:
    described = {version.number for version in release.versions}
    # A signed release may still be incomplete: the signature proves its origin only.
    used = {release.production, *release.standby, *release.labels.values()} - {None}
    if missing := used - described:
        raise ReleaseRefused(
            f"generation {release.generation} names versions it does not describe: {missing}"
        )
    return release
