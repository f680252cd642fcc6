"""Who may tell us what to serve: the holder of one Ed25519 key."""

import base64
import binascii
import hashlib

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

from jobs.contracts.release import Release, SignedRelease


class ReleaseRefused(Exception):
    """A release we must not act on; the incumbent stays."""


class Trust:
    """Verifies signed releases against one public key."""

    def __init__(self, key: Ed25519PublicKey) -> None:
        self._key = key
        raw = key.public_bytes(Encoding.Raw, PublicFormat.Raw)
        self.key_id = hashlib.sha256(raw).hexdigest()[:16]

    @classmethod
    def from_text(cls, text: bytes) -> "Trust":
        """Read a public key, PEM or base64 of its 32 bytes.

        Raises:
            ValueError: it is neither, or not of the Ed25519 kind.
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
        """Return the release if its signature holds and it names every version it uses.

        Raises:
            ReleaseRefused: it does not.
        """
        try:
            signature = base64.b64decode(signed.signature, validate=True)
            self._key.verify(signature, signed.release.signed_bytes())
        except (InvalidSignature, binascii.Error, ValueError):
            raise ReleaseRefused(
                f"the signature of generation {signed.release.generation} does not hold "
                f"(signed with key {signed.key}, we trust {self.key_id})"
            ) from None
        return _complete(signed.release)


def _complete(release: Release) -> Release:
    described = {version.number for version in release.versions}
    used = {release.production, *release.standby, *release.labels.values()} - {None}
    if missing := used - described:
        raise ReleaseRefused(
            f"generation {release.generation} names versions it does not describe: {missing}"
        )
    return release
