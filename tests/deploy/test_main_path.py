"""The way from data to predictions, by machines that share a database, a broker and a store."""

import sys
import time

from tests.deploy.team import Team


def test_x(team: Team) -> None:
    sys.stderr.write(f"{team.folder}\n")
    time.sleep(20)
