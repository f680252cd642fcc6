"""Verifies Ed25519 signatures on releases."""

import base64
import binascii
import hashlib
import logging
from collections.abc import Sequence
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from jobs.messages.release import Release, SignedRelease
from jobs.messages.release_keys import public_keys_in

log = logging.getLogger("trainyard.serving")


class ReleaseRefused(Exception):
    """The release must not be applied; the current one stays in effect."""


class ReleaseVerifier:
    """Verifies signed releases against public keys: one, or several while the key is rotated.

    Args:
        keys: the trusted keys.
        file: where they come from. It is read again when a signature is of none of them.
    """

    def __init__(self, keys: Sequence[Ed25519PublicKey], file: Path | None = None) -> None:
        self._keys, self._file = keys, file

    @classmethod
    def from_text(cls, text: bytes) -> "ReleaseVerifier":
        """Read public keys, PEM or base64 of the 32 bytes of one.

        Raises:
            ValueError: there is none, or one that is not an Ed25519 key.
        """
        return cls(public_keys_in(text))

    @classmethod
    def from_file(cls, path: Path) -> "ReleaseVerifier":
        """Read a file of public keys. See `from_text`.

        Raises:
            ValueError: there is no such file, or no public key in it.
        """
        try:
            content = path.read_bytes()
        except FileNotFoundError as error:
            raise ValueError(
                f"there is no file {path} with the key of releases: copy release.pub from the home of "
                "the dashboard, which makes it at its first start (up, or web --migrate)"
            ) from error
        return cls(public_keys_in(content), path)

    @property
    def key_id(self) -> str:
        """The names of the trusted keys."""
        return ", ".join(map(name_of, self._keys))

    def verify(self, signed: SignedRelease) -> Release:
        """Return the release if its signature is valid and it describes every version it names.

        Raises:
            ReleaseRefused: it does not.
        """
        if not self._is_signed(signed):
            self._read_again()
            if not self._is_signed(signed):
                raise ReleaseRefused(
                    f"the signature of generation {signed.release.generation} is not valid "
                    f"(signed with key {signed.key}, the trusted key is {self.key_id})"
                )
        return _check_complete(signed.release)

    def _is_signed(self, signed: SignedRelease) -> bool:
        try:
            signature = base64.b64decode(signed.signature, validate=True)
        except (binascii.Error, ValueError):
            return False
        return any(_verifies(key, signature, signed.release.signed_bytes()) for key in self._keys)

    def _read_again(self) -> None:
        """Trust the keys that the file has now: an operator may have added the next one."""
        if self._file is None:
            return
        try:
            self._keys = public_keys_in(self._file.read_bytes())
        except (OSError, ValueError) as error:
            log.warning("%s cannot be read, so the earlier keys are trusted: %s", self._file, error)


def name_of(key: Ed25519PublicKey) -> str:
    """Return a public key's name."""
    return hashlib.sha256(key.public_bytes(Encoding.Raw, PublicFormat.Raw)).hexdigest()[:16]


def _verifies(key: Ed25519PublicKey, signature: bytes, content: bytes) -> bool:
    try:
        key.verify(signature, content)
    except InvalidSignature:
        return False
    return True


def _check_complete(release: Release) -> Release:
    described = {version.number for version in release.versions}
    # A signed release may still be incomplete: the signature proves its origin only.
    used = {release.production, *release.standby, *release.labels.values()} - {None}
    if missing := used - described:
        raise ReleaseRefused(
            f"generation {release.generation} names versions it does not describe: {missing}"
        )
    return release
