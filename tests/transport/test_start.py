"""A server has one line in the log when it listens, with its address."""

import logging
import socket

import pytest

from tests.transport.conftest import Start


@pytest.mark.parametrize(("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")])
async def test_a_server_that_listens_has_one_line_with_its_address(
    host: str, shown: str, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip(f"this machine has no {host}")
    port = listener.getsockname()[1]
    with caplog.at_level(logging.INFO, "transport.server"):
        await start(listener=listener)
    lines = [record.getMessage() for record in caplog.records if record.name == "transport.server"]
    assert lines == [f"the server listens at http://{shown}:{port}"]
