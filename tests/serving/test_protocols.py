"""One `Protocol` value is all that the application, the direct path and the body workers need."""

from collections.abc import AsyncIterator, Collection

import pytest

from workers.serving.access import Access
from workers.serving.auth import TokenAuthenticator
from workers.serving.bodies import pool
from workers.serving.bodies.pool import BodyWorkerCommand
from workers.serving.known_callers import KnownCallers
from workers.serving.protocols.protocol import predictions_by_name
from workers.serving.protocols.table import PROTOCOLS
from workers.serving.settings import Limits

from .csv_protocol import CSV
from .in_process import Client, Serving, connect, listening, request, without_date

LINES = b"1,2,3,4\n5,6,7,8"
MANY_LINES = b"1,2,3,4\n" * 40_000


class CommandWithCsv(BodyWorkerCommand):
    """Body workers whose table has the protocol too."""

    def arguments(self, descriptor: int) -> list[str]:
        python, _, module, *options = super().arguments(descriptor)
        script = (
            f"from {module} import __main__\n"
            "from tests.serving.csv_protocol import CSV\n"
            "from workers.serving.protocols.table import PROTOCOLS\n"
            "__main__.main((*PROTOCOLS, CSV))"
        )
        return [python, "-c", script, *options]


@pytest.fixture
def authenticator() -> TokenAuthenticator | None:
    return None


@pytest.fixture
async def serving(
    authenticator: TokenAuthenticator | None, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Serving]:
    monkeypatch.setattr(pool, "BodyWorkerCommand", CommandWithCsv)
    async with listening(Serving(Limits(), authenticator, (*PROTOCOLS, CSV))) as serving:
        yield serving


@pytest.fixture
async def client(serving: Serving) -> Client:
    return await connect(serving)


async def test_the_application_and_the_direct_path_give_the_same_answer(
    serving: Serving, client: Client
) -> None:
    content = request(LINES, "/csv/m", X_Decimals="2")
    usual = await client.ask(content)
    assert serving.direct == 0
    direct = await client.ask(content)
    assert serving.direct == 1
    assert without_date(usual) == without_date(direct)
    head, body = direct
    assert body == b"m 3\n2.00,4.00,6.00,8.00\n10.00,12.00,14.00,16.00"
    order = [b"content-type: text/csv", b"x-trainyard-model-version: 3", b"x-trainyard-variant: production"]
    assert [line for line in head.split(b"\r\n") if line.startswith((b"x-", b"content-t"))] == [
        *order,
        b"x-lines: 2",
    ]


@pytest.mark.parametrize(
    ("content", "status", "message"),
    [
        (request(b"1,2", "/csv/m"), 400, b"failed: each line needs 4 numbers"),
        (request(LINES, "/csv/other"), 404, b"failed: Servable not found"),
    ],
)
async def test_errors_have_the_form_of_the_protocol(
    serving: Serving, client: Client, content: bytes, status: int, message: bytes
) -> None:
    for number in range(2):
        head, body = await client.ask(content)
        assert (head.startswith(b"HTTP/1.1 %d " % status), body) == (True, message)
        assert serving.direct == number
    head, body = await client.ask(request(LINES, "/csv/a/b"))
    assert (head.split()[1], body) == (b"404", b"failed: unknown path")
    assert (await client.ask(request(LINES, "/other")))[1] == b'{"error":"Not found"}'


async def test_body_workers_parse_and_encode_its_large_bodies(serving: Serving, client: Client) -> None:
    head, body = await client.ask(request(MANY_LINES, "/csv/m"))
    assert head.startswith(b"HTTP/1.1 200 ")
    assert b"x-lines: 40000\r\n" in head
    assert body == b"m 3" + b"\n2.0,4.0,6.0,8.0" * 40_000
    head, body = await client.ask(request(MANY_LINES + b"1", "/csv/m"))
    assert (head.split()[1], body) == (b"400", b"failed: each line needs 4 numbers")
    assert len(serving.workers._all) == 1


async def test_its_predictions_are_counted_by_their_name(serving: Serving, client: Client) -> None:
    for _ in range(3):
        await client.ask(request(LINES, "/csv/m"))
    line = b'request_latency_count{model_name="m",API="score_lines",entrypoint="REST"} 3\n'
    assert line in serving.metrics.text()


class Dashboard:
    """Knows no token."""

    async def access_of(self, token: str) -> None:
        return None

    async def known_access(self, digests: Collection[str], used: Collection[str]) -> dict[str, Access]:
        raise NotImplementedError


class TestWithTokens:
    @pytest.fixture
    def authenticator(self) -> TokenAuthenticator:
        return TokenAuthenticator(Dashboard(), KnownCallers(None, 3600))

    async def test_its_open_paths_need_none(self, client: Client) -> None:
        head, body = await client.ask(b"GET /csv/models HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (head.split()[1], body) == (b"200", b"m")
        head, body = await client.ask(request(LINES, "/csv/m"))
        assert head.startswith(b"HTTP/1.1 401 ")
        assert body.startswith(b"failed: Send a token")


def test_the_operations_of_all_protocols_have_different_names() -> None:
    assert set(predictions_by_name(PROTOCOLS)) == {
        *("predict", "predict_labels", "classify", "regress", "infer")
    }
    with pytest.raises(ValueError, match="two operations have the name 'score_lines'"):
        predictions_by_name((CSV, CSV))
