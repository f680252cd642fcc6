"""Parts that fail one after the other while a model trains and another one is asked for predictions."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial

import pytest

from tests.deploy import work
from tests.deploy.team import DASHBOARD, SCHEDULER, WEB, WORKER, Team, answers
from tests.ops.conftest import wait_for

LENGTH = 60.0 if os.environ.get("TRAINYARD_CHAOS") == "1" else 5.0
"""Seconds of an outage."""


@contextmanager
def refusing_database(team: Team) -> Iterator[None]:
    team["database"].stop("postgres", number=signal.SIGINT)
    try:
        yield
    finally:
        team.postgres.start()
        wait_for(team.postgres.answers, "PostgreSQL")


@contextmanager
def refusing_broker(team: Team) -> Iterator[None]:
    team["broker"].kill("redis")
    try:
        yield
    finally:
        team.start_broker()


def silent(name: str) -> Callable[[Team], AbstractContextManager[None]]:
    """Return an outage in which a machine's packets are dropped."""

    @contextmanager
    def outage(team: Team) -> Iterator[None]:
        team[name].cut()
        try:
            yield
        finally:
            team[name].join()

    return outage


OUTAGES: dict[str, Callable[[Team], AbstractContextManager[None]]] = {
    "database refuses": refusing_database,
    "database silent": silent("database"),
    "database slow": lambda team: team["database"].slow("postgres"),
    "broker refuses": refusing_broker,
    "broker silent": silent("broker"),
    "store silent": silent("store"),
}


@pytest.mark.parametrize("name", OUTAGES)
def test_a_training_goes_on_after_an_outage_and_predictions_in_it(team: Team, name: str) -> None:
    work.served_model(team)
    job = work.training(team)
    browser = work.log_in(team, "ada")
    before = work.state_of(team, job)
    with work.predicting(team) as asked:
        with OUTAGES[name](team):
            time.sleep(LENGTH)
        began = time.monotonic()
        work.until_trained_further(team, job)
        resumed = time.monotonic() - began
        wait_for(lambda: browser.get("/queue").status_code == 200, "the dashboard")
        dashboard = time.monotonic() - began
        wait_for(lambda: work.state_of(team, job)["copied"] > before["copied"], "a further copy")
    after = work.state_of(team, job)
    work.note(name, lost=len(asked.lost), of=asked.sent, training=resumed, dashboard=dashboard)
    assert asked.lost == []
    assert [attempt["state"] for attempt in after["attempts"]] == [
        attempt["state"] for attempt in before["attempts"]
    ], "the outage ended the run"


def test_work_is_done_while_the_broker_is_away(team: Team) -> None:
    work.upload(team)
    with silent("broker")(team):
        began = time.monotonic()
        work.until_completed(team, work.submit(team, work.QUICK_TRAINING, "without a broker"))
        work.note("a training without the broker", seconds=time.monotonic() - began)


def test_work_waits_for_the_store(team: Team) -> None:
    work.upload(team)
    with silent("store")(team):
        job = work.submit(team, work.QUICK_TRAINING, "without a store")
        time.sleep(LENGTH)
        assert team.ada.get(f"/jobs/{job}")["state"] not in work.FINAL
    began = time.monotonic()
    work.until_completed(team, job)
    work.note("a training begun without the store", seconds_after=time.monotonic() - began)


def test_predictions_need_no_dashboard(team: Team) -> None:
    work.served_model(team)
    servers = [f"http://{team[name].address}:8501" for name in ("serving-1", "serving-2")]
    with work.predicting(team, *servers) as asked:
        for name in ("web-1", "web-2"):
            team[name].cut()
        time.sleep(LENGTH)
        for name in ("web-1", "web-2"):
            team[name].join()
        for name in ("web-1", "web-2"):
            wait_for(partial(team.is_up, name), name)
    # The proxy tries servers again that did not answer, after ten seconds.
    dashboard = work.seconds_until(lambda: answers(f"{DASHBOARD}/healthz"), "the dashboard")
    slowest = asked.slowest * 1000
    work.note(
        "dashboard silent", lost=len(asked.lost), of=asked.sent, slowest_ms=slowest, dashboard=dashboard
    )
    assert asked.lost == []


def test_a_training_resumes_on_the_other_machine_when_one_loses_its_power(team: Team) -> None:
    job = work.training(team)
    before = work.state_of(team, job)
    worker = before["attempts"][-1]["worker"]
    team[worker].cut()
    team[worker].kill("worker")

    def resumed() -> bool:
        attempts = work.state_of(team, job)["attempts"]
        return len(attempts) > len(before["attempts"]) and attempts[-1]["epochs"] > 0

    seconds = work.seconds_until(resumed, "the other worker")
    *_, lost, new = work.state_of(team, job)["attempts"]
    reached = (lost["resumed"] or [0])[0] + lost["epochs"]
    repeated = reached - new["resumed"][0]
    work.note("worker without power", seconds=seconds, repeated=repeated, of_epochs=reached)
    assert new["worker"] != worker
    assert new["resumed"][0] >= before["copied"] > 0
    assert "restarted" not in work.state_of(team, job)["warnings"]
    team[worker].join()
    team.start_page(worker, "worker", WORKER)
    wait_for(lambda: work.workers_up(team) == 2, "the worker to return")


@pytest.mark.parametrize("end", ["killed", "silent"])
def test_people_stay_logged_in_when_a_web_server_is_away(team: Team, end: str) -> None:
    work.served_model(team)
    browser = work.log_in(team, "ada")
    machine = team["web-1"]
    with work.visiting(f"{DASHBOARD}/queue", browser) as pages, work.predicting(team) as asked:
        if end == "killed":
            machine.kill("web")
        else:
            machine.cut()
        time.sleep(LENGTH)
        if end == "killed":
            team.start_page("web-1", "web", WEB)
        else:
            machine.join()
        wait_for(lambda: team.is_up("web-1"), "the web server")
    work.note(
        f"web server {end}",
        lost=len(pages.lost),
        of=pages.sent,
        slowest=pages.slowest,
        predictions_lost=len(asked.lost),
    )
    assert pages.lost == []
    assert asked.lost == []


def test_another_scheduler_takes_over(team: Team) -> None:
    work.upload(team)
    name = wait_for(lambda: team.call("tests.deploy.inside", "scheduler"), "a scheduler")
    team[name].kill("scheduler")
    began = time.monotonic()
    job = work.submit(team, work.QUICK_TRAINING, "after a scheduler")

    def is_placed() -> bool:
        return bool(team.ada.get(f"/jobs/{job}")["state"] != "queued")

    seconds = work.seconds_until(is_placed, "the other scheduler")
    work.note("scheduler killed", seconds_until_work_is_placed=seconds)
    assert team.call("tests.deploy.inside", "scheduler") not in ("", name)
    assert time.monotonic() - began < 60
    team.start_page(name, "scheduler", SCHEDULER)
    work.until_completed(team, job)


def test_a_promotion_names_the_prediction_server_that_is_cut_off(team: Team) -> None:
    work.served_model(team)
    work.until_completed(team, work.submit(team, work.OTHER_SEARCH, "another version"))
    address = work.request_release(team, work.newest_version(team))
    wait_for(lambda: work.cut_off(team) == [], "both prediction servers to be up to date")
    with silent("serving-2")(team):
        work.approve(team, address)

        def named() -> bool:
            return "serving-2" in str(team.ada.get(address)["cut_off"])

        seconds = work.seconds_until(named, "the promotion to name the server")
    began = time.monotonic()
    work.released(team, address)
    wait_for(lambda: not team.ada.get(address)["cut_off"], "the server to follow")
    work.note("prediction server cut off", named_after=seconds, follows_after=time.monotonic() - began)
