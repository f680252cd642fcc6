"""Releases are verified, and older or forged ones change nothing."""

import hashlib
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.serving.fakes import Signer
from tests.serving.releases.test_releases import FakeServer, release, version
from workers.serving.releases.verification import ReleaseRefused, ReleaseVerifier


@pytest.fixture
def fake(tmp_path: Path) -> FakeServer:
    return FakeServer(tmp_path)


def test_the_public_key_may_be_pem_or_base64() -> None:
    key = Ed25519PrivateKey.generate().public_key()
    pem = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    raw = key.public_bytes(Encoding.Raw, PublicFormat.Raw)
    assert ReleaseVerifier.from_text(pem).key_id == hashlib.sha256(raw).hexdigest()[:16]
    with pytest.raises(ValueError, match="neither PEM nor base64"):
        ReleaseVerifier.from_text(b"hello")


def test_a_modified_release_and_a_foreign_signature_are_refused() -> None:
    signer = Signer()
    trust, signed = ReleaseVerifier.from_text(signer.public), signer.sign(release(1, 1))
    assert trust.verify(signed) == signed.release
    with pytest.raises(ReleaseRefused, match="is not valid"):
        trust.verify(signed.model_copy(update={"release": release(2, 1)}))
    with pytest.raises(ReleaseRefused, match="is not valid"):
        trust.verify(Signer().sign(release(1, 1)))
    with pytest.raises(ReleaseRefused, match="is not valid"):
        trust.verify(signed.model_copy(update={"signature": "ä"}))


def test_a_release_must_describe_the_versions_it_names() -> None:
    signer = Signer()
    broken = release(1, 1, 2).model_copy(update={"versions": (version(2),)})
    with pytest.raises(ReleaseRefused, match=r"does not describe: \{1\}"):
        ReleaseVerifier.from_text(signer.public).verify(signer.sign(broken))


async def test_an_older_generation_is_never_applied(fake: FakeServer) -> None:
    await fake.serving(release(5, 1))
    await fake.publish(release(4, 2))
    assert fake.loads() == [1]
    assert "generation 4 is not newer than 5" in fake.report["error"]
    await fake.publish(release(5, 2))
    assert fake.loads() == [1]


async def test_the_same_release_again_changes_nothing(fake: FakeServer) -> None:
    await fake.serving(release(5, 1))
    await fake.publish(release(5, 1))
    assert (fake.loads(), fake.report["error"]) == ([1], None)


async def test_a_forged_release_changes_nothing_and_is_reported(fake: FakeServer) -> None:
    await fake.serving(release(1, 1))
    fake.catalog.accept_all([Signer().sign(release(2, 2)).model_dump(mode="json"), {"nonsense": True}])
    assert (fake.loads(), fake.answers()) == ([1], 1)
    assert "is not valid" in fake.report["error"]
