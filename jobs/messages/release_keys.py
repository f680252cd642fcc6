"""Reads the public keys with which releases are verified."""

import base64
import binascii
import re

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

_PEM = re.compile(rb"-----BEGIN ([A-Z ]+)-----.*?-----END \1-----", re.DOTALL)


def public_keys_in(text: bytes) -> list[Ed25519PublicKey]:
    """Return the keys of a file: one or more in PEM, or base64 of the 32 bytes of one.

    Raises:
        ValueError: it has none, or one that is not an Ed25519 key.
    """
    if text.lstrip().startswith(b"-----"):
        keys = [load_pem_public_key(found[0]) for found in _PEM.finditer(text)]
        ed25519 = [key for key in keys if isinstance(key, Ed25519PublicKey)]
        if not keys or len(ed25519) != len(keys):
            raise ValueError("the public key is not an Ed25519 key")
        return ed25519
    try:
        return [Ed25519PublicKey.from_public_bytes(base64.b64decode(text.strip(), validate=True))]
    except (binascii.Error, ValueError):
        raise ValueError("the public key is neither PEM nor base64 of 32 bytes") from None
