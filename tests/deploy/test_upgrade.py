"""The upgrade of docs/guide/14-upgrade.md on several machines, while one trains and others answer.

It is the last: afterwards the installation has the next version.
"""

import signal
from functools import partial
from pathlib import Path

from jobs.queries import compatibility
from tests.deploy import work
from tests.deploy.team import FIRST_WEB, QUICK, SCHEDULER, SERVING, WEB, WORKER, Team
from tests.ops.conftest import ROOT, wait_for
from tests.upgrade.next_version import NUMBER, make_next_version

ENDS = (0, -signal.SIGTERM)
"""The status of a part that was asked to end."""
PARTS = {"worker": WORKER, "scheduler": SCHEDULER, "web": WEB}


def test_all_parts_are_upgraded_in_their_order_while_predictions_are_answered(
    team: Team, tmp_path: Path
) -> None:
    work.served_model(team)
    job = work.training(team)
    newer = make_next_version(tmp_path / "next", newest=compatibility.own_schema())
    (newer / ".venv").symlink_to((ROOT / ".venv").resolve())
    servers = [f"http://{team[name].address}:8501" for name in ("serving-1", "serving-2")]
    with work.predicting(team, *servers) as asked:
        for part in PARTS:
            for name in (f"{part}-1", f"{part}-2"):
                assert team[name].stop(part) in ENDS, team[name].printed(part)[-2000:]
        saved = work.state_of(team, job)
        script = "set -a; . /srv/trainyard.env; .venv/bin/python manage.py backup /srv/before.tar"
        team["web-1"].run("sh", "-euc", script, environment=QUICK)

        team.program = newer
        team.start_page("web-1", "web", FIRST_WEB)
        wait_for(lambda: team.is_up("web-1"), "the first web server", 240)
        team.start_page("web-2", "web", WEB)
        for part in ("scheduler", "worker"):
            for name in (f"{part}-1", f"{part}-2"):
                team.start_page(name, part, PARTS[part])

        def resumed() -> bool:
            attempts = work.state_of(team, job)["attempts"]
            return len(attempts) > len(saved["attempts"]) and attempts[-1]["epochs"] > 0

        seconds = work.seconds_until(resumed, "the training to resume", 240)
    assert asked.lost == []
    *_, old, new = work.state_of(team, job)["attempts"]
    reached = (old["resumed"] or [0])[0] + old["epochs"]
    work.note(
        "upgrade",
        predictions_lost=len(asked.lost),
        of=asked.sent,
        training_resumes_after_start=seconds,
        repeated=reached - new["resumed"][0],
    )
    assert new["resumed"][0] == reached, "a worker that is stopped writes its last checkpoint"
    for name, url in zip(("serving-1", "serving-2"), servers, strict=True):
        with work.predicting(team, next(other for other in servers if other != url)) as asked:
            assert team[name].stop("serving") in ENDS
            team.start_page(name, "serving", SERVING)
            wait_for(partial(work.is_ready, team, name), name)
        assert asked.lost == []
    assert NUMBER in team["web-1"].run(
        "sh",
        "-euc",
        f"set -a; . /srv/trainyard.env; cd {newer}; .venv/bin/python manage.py version",
        environment=QUICK,
    )
