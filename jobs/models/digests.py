"""Computes digests for texts that people edit, as their ETags."""

import hashlib
import json


def text_digest(*texts: str) -> str:
    """Return a digest that differs if any text differs."""
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:32]
