"""Live events by token, across a restart of the web server."""

import pytest

from tests.flow.conftest import Watched
from tests.flow.yard import RunningYard

pytestmark = pytest.mark.timeout(1800)


def test_both_streams_show_every_event_once_across_a_restart_of_the_web(
    flow_installation: RunningYard, watched: Watched
) -> None:
    last = flow_installation.events_of(watched.job)[-1]["cursor"]
    for reader in watched.readers:
        reader.wait_until(last)
        assert reader.cursors == list(range(1, last + 1))
        assert reader.interruptions >= 1
