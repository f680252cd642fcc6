"""Homes from earlier commits are upgraded: finished work is unchanged, interrupted work resumes."""

import re
from datetime import datetime
from typing import Any

import httpx2
import pytest

from tests.flow.yard import RunningYard
from tests.ops.conftest import PATIENCE
from tests.upgrade import scripts
from tests.upgrade.answers import Body, Reader, differences, pages
from tests.upgrade.conftest import Upgraded
from tests.upgrade.interrupted_work import STEPS

pytestmark = pytest.mark.timeout(600)

MEASURED = ("score", "std", "started", "finished")
JOB = r"/jobs/\d+"
"""The address of one job."""
LASTING = ("number", "values", "source", "bracket")
"""Fields of a trial that never change."""


def test_everything_that_had_ended_answers_as_it_did(upgraded: Upgraded) -> None:
    reader = Reader(upgraded.yard.urls["web"], upgraded.yard.tokens["root"])
    changed = {
        address: changes
        for address in upgraded.before["ended"]
        if (changes := differences(expected(upgraded.before["ended"], address), reader.get(address)))
    }
    assert not changed


def expected(ended: dict[str, Body], address: str) -> Body:
    """Return an earlier answer as it is given today: without fields that were withdrawn or redefined.

    How long a job ran is now measured over its attempts; `test_an_ended_job_ran_as_long_as_its_attempts`
    compares it with the earlier answers about these.
    """
    answer = without_withdrawn(address, ended[address])
    if not re.fullmatch(JOB, address) or not times_of(ended, answer["id"]):
        return answer
    return {name: value for name, value in answer.items() if name != "seconds"}


def test_an_ended_job_ran_as_long_as_its_attempts(upgraded: Upgraded) -> None:
    reader, ended = Reader(upgraded.yard.urls["web"], upgraded.yard.tokens["root"]), upgraded.before["ended"]
    times = {a: times_of(ended, answer["id"]) for a, answer in ended.items() if re.fullmatch(JOB, a)}
    ran = {address: reader.get(address)["seconds"] for address, spans in times.items() if spans}
    assert ran
    # The earlier answers have whole milliseconds.
    assert ran == {a: pytest.approx(covered(times[a]), abs=0.002 * len(times[a])) for a in ran}


def times_of(ended: dict[str, Body], job: int) -> list[tuple[float, float]]:
    """Return when each attempt of a job and of its steps began and ended, in the order of beginnings."""
    root = ended[f"/jobs/{job}"]
    if root["kind"] == "search" and root["experiment"] is None:
        # A script outside holds its trials, and works between them too.
        return []
    members = [body["id"] for a, body in ended.items() if re.fullmatch(JOB, a) and body["parent"] == job]
    attempts = [item for member in (job, *members) for item in ended[f"/jobs/{member}/attempts"]["items"]]
    moments = [(a["claimed"], a["ended"]) for a in attempts if a["claimed"] and a["ended"]]
    return sorted((_unix_time(begin), _unix_time(end)) for begin, end in moments)


def covered(times: list[tuple[float, float]]) -> float:
    """Return the seconds in which at least one attempt ran."""
    seconds, until = 0.0, 0.0
    for begin, end in times:
        seconds += max(0.0, end - max(begin, until))
        until = max(until, end)
    return seconds


def _unix_time(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def without_withdrawn(address: str, answer: Body) -> Body:
    """Return an earlier answer without the field that was withdrawn on purpose.

    The optional traceback for a refused data set or model version named a worker's files.
    """
    if "/versions/" not in address or not answer.get("error"):
        return answer
    return answer | {"error": {name: answer["error"][name] for name in ("code", "message")}}


def test_every_page_of_it_opens(upgraded: Upgraded) -> None:
    link = upgraded.yard.manage("adduser", "root").stdout.strip()
    with httpx2.Client(base_url=upgraded.yard.urls["web"], follow_redirects=True, timeout=60) as browser:
        form = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', browser.get(link).text)
        assert form
        entered = browser.post(link, data={"csrfmiddlewaretoken": form[1]}, headers={"Referer": link})
        assert entered.status_code == 200
        opened = {page: browser.get(page) for page in pages(upgraded.before)}
    assert {page: answer.status_code for page, answer in opened.items() if answer.status_code != 200} == {}
    assert not [page for page, answer in opened.items() if answer.url.path != page.partition("?")[0]]


def test_the_audit_chain_verifies(upgraded: Upgraded) -> None:
    verified = upgraded.yard.manage("audit", "verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_the_released_version_still_predicts(upgraded: Upgraded) -> None:
    asked = upgraded.before["prediction"]
    version, answer = upgraded.yard.predict("flowers", [asked["instance"]])
    assert version == asked["version"]
    assert answer[0] == pytest.approx(asked["answer"][0], rel=1e-4)


def test_an_ensemble_of_chosen_trials_is_run_again_with_the_same_members(upgraded: Upgraded) -> None:
    ended = upgraded.before["ended"].values()
    old = next(job for job in ended if job.get("kind") == "ensemble" and job["parent"] is None)
    new = upgraded.yard.ada.post(f"/jobs/{old['id']}/clone")
    upgraded.yard.ada.post(f"/jobs/{new['id']}/kill")
    assert new["title"] == old["title"] == "Ensemble of trials 1, 2"
    assert [step["kind"] for step in new["steps"]] == [step["kind"] for step in old["steps"]]


def test_a_half_finished_search_keeps_its_trials_and_completes_with_the_steps_after_it(
    upgraded: Upgraded,
) -> None:
    job = upgraded.before["searches"]["half"]
    ended = upgraded.yard.until_completed(job)
    assert {step["state"] for step in ended["steps"]} == {"completed"}
    assert ended["results"]["versions"] == [{"model": "half", "number": 1, "what": "ensemble"}]
    trials = trials_of(upgraded.yard, job)
    assert [trial["state"] for trial in trials.values()] == ["completed"] * 8
    assert_nothing_is_lost(upgraded, job)


def test_its_interrupted_trainings_resume_from_their_checkpoints(upgraded: Upgraded) -> None:
    job = upgraded.before["searches"]["half"]
    upgraded.yard.until_completed(job)
    interrupted = [t for t in trials_before(upgraded, job).values() if t["state"] == "running"]
    assert len(interrupted) == 2
    for trial in interrupted:
        assert first_resumption(upgraded, job, trial["number"]) == (
            trial["checkpoint"]["step"],
            trial["checkpoint"]["epoch"] + 1,
        )


@pytest.mark.parametrize("step", STEPS)
def test_a_waiting_step_and_all_later_steps_are_completed(upgraded: Upgraded, step: str) -> None:
    job = upgraded.before["searches"][step]
    ended = upgraded.yard.until_completed(job)
    assert {step["state"] for step in ended["steps"]} == {"completed"}
    assert {entry["what"] for entry in ended["results"]["versions"]} == {"best", "ensemble", "quantized"}


def test_an_upload_and_a_version_that_were_waiting_are_checked(upgraded: Upgraded) -> None:
    upgraded.yard.until_ready("waiting", project="flow")
    upgraded.yard.until_candidate("waiting", 1)


def test_a_search_with_trials_at_rungs_completes(upgraded: Upgraded) -> None:
    job = upgraded.before["searches"]["rungs"]
    upgraded.yard.until_completed(job)
    for number, trial in trials_of(upgraded.yard, job).items():
        assert trial["state"] in ("completed", "pruned")
        series = upgraded.yard.ada.get(f"/jobs/{job}/metrics", names="val_loss", trial=number)["series"][0]
        assert [x for x, *_ in series["points"]] == list(range(1, trial["executions"][0]["epochs"] + 1))
    assert_nothing_is_lost(upgraded, job)


def test_a_search_of_external_scripts_resumes_with_the_same_trials(upgraded: Upgraded) -> None:
    assert upgraded.script.wait(PATIENCE) == 0
    searches = upgraded.yard.ada.get("/jobs", kind="search")["items"]
    job = next(job for job in searches if job["title"] == scripts.INTERRUPTED)
    upgraded.yard.until_completed(job["id"])
    states = [trial["state"] for trial in trials_of(upgraded.yard, job["id"]).values()]
    assert states == ["completed"] * 12
    assert_nothing_is_lost(upgraded, job["id"])


# Trials before and after the upgrade


def trials_of(yard: RunningYard, job: int) -> dict[int, Body]:
    return {trial["number"]: trial for trial in yard.ada.get(f"/jobs/{job}/trials")["items"]}


def trials_before(upgraded: Upgraded, job: int) -> dict[int, Body]:
    return {trial["number"]: trial for trial in upgraded.before["unfinished"][f"/jobs/{job}/trials"]["items"]}


def assert_nothing_is_lost(upgraded: Upgraded, job: int) -> None:
    """Trials keep numbers and values, what had ended keeps its results, and executions their seeds."""
    now = trials_of(upgraded.yard, job)
    for number, old in trials_before(upgraded, job).items():
        new = now[number]
        assert not differences(picked(old, LASTING), new)  # values may be added: a script found more
        assert not differences(old["decisions"], new["decisions"][: len(old["decisions"])])
        if old["state"] == "completed":
            assert picked(new, MEASURED) == picked(old, MEASURED)
        for before, after in zip(old["executions"], new["executions"], strict=True):
            assert before["seed"] == after["seed"]
            if before["state"] == "completed":
                assert before == after


def picked(trial: Body, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: trial[name] for name in names}


def first_resumption(upgraded: Upgraded, job: int, number: int) -> tuple[int, float]:
    """Return the step from which a trial's next attempt resumed, and the first epoch that it reported."""
    old = max(a["number"] for a in upgraded.before["unfinished"][f"/jobs/{job}/attempts"]["items"])
    attempts = upgraded.yard.ada.get(f"/jobs/{job}/attempts", sort="id")["items"]
    attempt = next(a for a in attempts if a["number"] > old and a["trials"][0] == number)
    points = [
        x
        for event in upgraded.yard.events_of(job)
        if event["type"] == "metric" and event["attempt"] == attempt["number"] and event["trial"] == number
        for name, x, *_ in event["points"]
        if name == "val_loss"
    ]
    return attempt["resumed_from"], points[0]
