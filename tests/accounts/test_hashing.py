"""Passwords are hashed a few at a time, because each takes 100 MB of memory."""

from types import TracebackType

import pytest
from django.contrib.auth.hashers import Argon2PasswordHasher
from django.utils.module_loading import import_string

from webapp.accounts import hashing
from webapp.settings import main


class Places:
    """Counts the passwords that are being hashed."""

    def __init__(self) -> None:
        self.taken = 0

    def __enter__(self) -> None:
        self.taken += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.taken -= 1


def test_new_and_entered_passwords_take_a_place_while_they_are_hashed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    places = Places()
    taken: list[int] = []
    monkeypatch.setattr(hashing, "_places", places)

    def encode(*_: object) -> str:
        taken.append(places.taken)
        return "hash"

    def verify(*_: object) -> bool:
        taken.append(places.taken)
        return True

    monkeypatch.setattr(Argon2PasswordHasher, "encode", encode)
    monkeypatch.setattr(Argon2PasswordHasher, "verify", verify)
    hasher = import_string(main.PASSWORD_HASHERS[0])()
    assert hasher.encode("password", "salt") == "hash"
    assert hasher.verify("password", "hash")
    assert (taken, places.taken) == ([1, 1], 0)


def test_the_places_take_less_than_half_a_gigabyte() -> None:
    hasher = hashing.Argon2()
    assert hashing.MOST_AT_ONCE * hasher.memory_cost * 1024 < 2**29


def test_hashes_of_earlier_versions_are_verified() -> None:
    encoded = Argon2PasswordHasher().encode("password", Argon2PasswordHasher().salt())
    assert hashing.Argon2().verify("password", encoded)
    assert not hashing.Argon2().verify("another", encoded)
    assert not hashing.Argon2().must_update(encoded)
