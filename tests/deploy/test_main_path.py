"""The way from data to predictions, by machines that share a database, a broker and a store."""

import shutil

import httpx2
import pytest

from tests.deploy import work
from tests.deploy.team import DASHBOARD, QUICK, WEB, Team


def test_people_who_log_in_are_known_to_both_web_servers(team: Team) -> None:
    browser = work.log_in(team, "ada")
    for name in ("web-1", "web-2"):
        answer = httpx2.get(
            f"http://{team[name].address}:8000/queue",
            headers={"Host": "trainyard.example", "Cookie": work.cookies_of(browser)},
            trust_env=False,
        )
        # Not by the proxy: without TLS in front of it, the server only redirects.
        assert answer.headers.get("location", "").startswith(DASHBOARD), (name, answer.text)
    assert [browser.get("/queue").status_code for _ in range(6)] == [200] * 6
    assert "ada" in browser.get("/queue").text


def test_a_search_leads_to_a_release_that_both_prediction_servers_answer(team: Team) -> None:
    work.served_model(team)
    answers = []
    for name in ("serving-1", "serving-2"):
        answer = httpx2.post(
            f"http://{team[name].address}:8501/v1/models/{work.MODEL}:predict",
            json={"instances": [work.ROW]},
            headers={"Authorization": f"Bearer {team.predict_token}"},
            timeout=60,
            trust_env=False,
        )
        assert answer.status_code == 200, answer.text
        answers.append((answer.headers["X-Trainyard-Model-Version"], answer.json()["predictions"]))
    assert answers[0] == answers[1]
    assert answers[0][0] == "1"
    replicas = team.ada.get(f"/endpoints/{work.MODEL}")["replicas"]
    assert {replica["name"] for replica in replicas} == {"serving-1", "serving-2"}


def test_a_web_server_without_the_keys_of_the_first_one_is_refused(team: Team) -> None:
    team.configure("client")
    with pytest.raises(AssertionError, match=r"copy secret\.key from the home of the first web server"):
        team["client"].run("sh", "-euc", WEB.script(), environment=QUICK)
    (team["client"].disk / "state").mkdir(mode=0o700)
    with pytest.raises(AssertionError, match=r"copy release\.key from the home of the first web server"):
        team["client"].run("sh", "-euc", WEB.script(), environment=QUICK)
    shutil.copy(team["web-1"].disk / "state" / "release.key", team["client"].disk / "state")
    with pytest.raises(AssertionError, match=r"The secret key in /srv/state/secret\.key is .* copy the file"):
        team["client"].run("sh", "-euc", WEB.script(), environment=QUICK)


def test_workers_and_prediction_servers_have_no_key_that_signs(team: Team) -> None:
    kept = (team["web-1"].disk / "state" / "secret.key").read_text()
    for name in ("worker-1", "worker-2"):
        assert not (team[name].disk / "state" / "secret.key").exists()
    for name in ("worker-1", "worker-2", "serving-1", "serving-2"):
        assert not (team[name].disk / "state" / "release.key").exists()
        keys = [path.read_text(errors="replace") for path in team[name].disk.rglob("secret.key")]
        assert kept not in keys
