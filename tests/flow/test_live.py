"""Live events by token, across a restart of the web server."""

import pytest

from tests.flow.readers import Reader, SocketReader, StreamReader
from tests.flow.specs import search, spec
from tests.flow.yard import RunningYard
from tests.ops.conftest import wait_for

pytestmark = pytest.mark.timeout(1800)


def test_both_streams_show_every_event_once_across_a_restart_of_the_web(flow_yard: RunningYard) -> None:
    job_id = flow_yard.submit(spec(search=search(), fit={"epochs": 60, "batch_size": 16}))
    kinds: list[type[Reader]] = [SocketReader, StreamReader]
    readers = [kind(flow_yard.urls["web"], flow_yard.bearer("ada"), job_id) for kind in kinds]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.wait_for(lambda reader=reader: reader.cursor >= 5, 120)
    web = flow_yard.parts()["web"]
    web.kill()
    wait_for(lambda: (found := flow_yard.parts().get("web")) and found.pid != web.pid, "another web server")
    flow_yard.until_completed(job_id)
    last = flow_yard.events_of(job_id)[-1]["cursor"]
    for reader in readers:
        reader.wait_until(last)
        assert reader.cursors == list(range(1, last + 1))
        assert reader.breaks >= 1
