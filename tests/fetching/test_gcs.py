"""Google Cloud Storage needs an extra; with it, only the account of the project is used."""

import io
import json
from typing import Any

import fsspec
import pytest

from jobs.errors import FetchFailed
from jobs.sources import gcs
from jobs.spec.data.addresses import parse
from jobs.spec.data.credentials import CREDENTIAL, GOOGLE_TOKENS

ACCOUNT = {"type": "service_account", "token_uri": GOOGLE_TOKENS, "private_key": "x"}


def test_without_the_extra_the_refusal_names_it() -> None:
    with pytest.raises(FetchFailed) as refused:
        gcs.open_gcs(parse("gs://bucket/a.csv"), None)
    assert "the extra `gs`" in refused.value.message


@pytest.mark.parametrize("account", [None, ACCOUNT])
def test_an_object_is_read_with_the_account_or_anonymously(
    account: dict[str, str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, Any] = {}

    class Files:
        def info(self, place: str) -> dict[str, Any]:
            return {"size": 3, "etag": "e", "updated": "2026-11-24", "place": place}

        def open(self, place: str, mode: str) -> io.BytesIO:
            assert (place, mode) == ("bucket/a.csv", "rb")
            return io.BytesIO(b"a,b")

    def filesystem(kind: str, **options: Any) -> Files:
        settings.update(options, kind=kind)
        return Files()

    monkeypatch.setattr(gcs, "find_spec", lambda _: True)
    monkeypatch.setattr(fsspec, "filesystem", filesystem)
    body = {"kind": "gcs", "account": json.dumps(account)}
    credential = None if account is None else CREDENTIAL.validate_python(body)
    source = gcs.open_gcs(parse("gs://bucket/a.csv"), credential)
    assert b"".join(source.blocks) == b"a,b"
    assert (source.size, source.etag) == (3, "e")
    assert settings["token"] == (account or "anon")
