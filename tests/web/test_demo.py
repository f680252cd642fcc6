"""The demo's output, the approval that it leaves to a person, and its button that kills a runner."""

import csv
import io
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest
from django.test import Client
from pytest_django import Settings as SettingsWrapper

from jobs.actions.people import people as actions
from jobs.models import Attempt, AuditEvent, Checkpoint, Job
from tests.factories import make_attempt, make_experiment, make_job, make_trials, make_worker
from tests.markup import text_of
from tests.people import People, browser_of
from webapp.demo import flow as demo_flow
from webapp.demo import runners
from webapp.demo.digits import DIGITS
from webapp.demo.flow import Flow
from webapp.demo.people import APPROVER, TRAINER, create_demo_person
from webapp.demo.scenario import class_of
from webapp.demo.table import TABLE, orders
from webapp.management.commands.demo import Command
from webapp.ops import preparation


def run_flow(monkeypatch: pytest.MonkeyPatch, *, by_hand: bool) -> tuple[list[Any], Any]:
    """Run the flow with every step replaced by its name; return the steps and the request that is left."""
    steps: list[Any] = []
    versions = [{"what": "best", "number": 1}, {"what": "ensemble", "number": 2}]
    answers = {"search": {"results": {"versions": versions}}, "request": {"id": 9, "version": 2}}
    for name in ("prepare", "search", "request", "approve", "predict", "roll_back"):

        def step(_flow: Flow, *arguments: Any, name: str = name) -> Any:
            steps.append((name, arguments[-1] if name in ("predict", "roll_back", "approve") else None))
            return answers.get(name)

        monkeypatch.setattr(Flow, name, step)
    clients: Any = SimpleNamespace(name="ada")
    left = Flow(DIGITS, clients, clients, "http://w", "http://s", lambda _line: None, by_hand=by_hand).run()
    return [step for step in steps if step[1] is not None], left


def test_the_demo_leaves_its_last_approval_to_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_flow(monkeypatch, by_hand=True) == ([("approve", 1), ("predict", 1)], {"id": 9, "version": 2})


def test_a_demo_that_exits_approves_both_versions_and_rolls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, left = run_flow(monkeypatch, by_hand=False)
    assert steps == [("approve", 1), ("predict", 1), ("approve", 2), ("predict", 2), ("roll_back", 2)]
    assert left is None


def test_the_demo_names_the_page_of_the_approval_and_says_what_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(demo_flow, "PERSON_SECONDS", 0)
    states = iter(("pending", "approved", "released"))
    trainer: Any = SimpleNamespace(
        name="ada", get=lambda _path: {"state": next(states), "version": 2, "generation": 3}
    )
    lines: list[str] = []
    flow = Flow(
        DIGITS, trainer, cast(Any, SimpleNamespace(name="grace")), "http://w", "http://s", lines.append
    )
    flow.wait_for_person({"id": 9, "version": 2})
    assert "As grace, open http://w/approvals/9 and approve it." in lines[1]
    assert "Version 2 is live, generation 3." in lines[2]
    assert "http://w/endpoints/digits" in lines[3]


def test_exactly_one_link_for_each_person_is_printed_and_opens_the_page_that_they_need(
    people: People, settings: SettingsWrapper, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in (TRAINER, APPROVER):
        create_demo_person(name)
    settings.TRAINYARD_DEMO = True
    command = Command()
    command._began = time.monotonic()
    command._show_logins("http://w", 7)
    printed = [*preparation._login_lines("http://w"), capsys.readouterr().out]
    links = re.findall(r"http://w(/login/\S+)", "\n".join(printed))
    opened = []
    for link in links:
        visitor = Client()
        assert "Log in as" in visitor.get(link).content.decode()
        answer = visitor.post(link)
        opened.append((visitor.get("/account/").context["user"].username, answer["Location"]))
    assert opened == [(TRAINER, "/jobs/7"), (APPROVER, "/approvals")]


def test_a_login_link_does_not_lead_to_another_site(people: People) -> None:
    for elsewhere in ("https://example.org/", "//example.org/", "javascript:alert(1)"):
        link = actions.create_login_link(people.member, by=None)
        assert Client().post(f"{link}?next={elsewhere}")["Location"] == "/"


@pytest.fixture
def search(people: People) -> Job:
    experiment = make_experiment(project=people.project, by=people.owner)
    return make_job(experiment=experiment, by=people.owner, state="running")


@pytest.fixture
def attempt(search: Job) -> Attempt:
    """An attempt whose trial trains and has a checkpoint."""
    (trial,) = make_trials(search, 1)
    search.trials.update(state="running", score=None, finished=None)
    new_attempt = make_attempt(search, make_worker(), trial=trial)
    trial.executions.update(state="running")
    Checkpoint.objects.create(
        job=search,
        trial=trial,
        execution=1,
        attempt=new_attempt.number,
        step=70,
        epoch=7,
        folder="a",
        manifest="0",
        bytes=1,
    )
    return new_attempt


@pytest.fixture
def runner(
    attempt: Attempt, settings: SettingsWrapper, tmp_path: Path
) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that replaces the attempt's runner, in a demo."""
    settings.TRAINYARD_DEMO, settings.TRAINYARD_HOME = True, tmp_path
    process = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True
    )
    folder = tmp_path / "nodes" / "w" / "attempts" / str(attempt.pk)
    folder.mkdir(parents=True)
    born = psutil.Process(process.pid).create_time()
    (folder / "process.json").write_text(json.dumps({"pid": process.pid, "born": born}))
    yield process
    process.kill()
    process.wait()


def test_an_administrator_of_a_demo_kills_the_runner_of_a_trial(
    people: People, search: Job, runner: "subprocess.Popen[bytes]"
) -> None:
    browser, address = browser_of(people.owner), f"/jobs/{search.pk}/kill-runner"
    page = browser.get(f"/jobs/{search.pk}").content.decode()
    assert address in page
    assert 'data-confirm="Kill a runner of this job?"' in page
    answer = browser.post(address, follow=True)
    assert runner.wait(10) == -9
    assert f"Process {runner.pid} of trial 1 is killed." in text_of(answer)
    assert AuditEvent.objects.filter(action="demo.kill_runner", actor=people.owner).exists()


def test_a_process_that_only_has_the_pid_of_a_runner_is_not_killed(
    people: People, search: Job, runner: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runners, "WAIT_SECONDS", 0)
    monkeypatch.setattr(runners, "START_TOLERANCE_SECONDS", -1)
    answer = browser_of(people.owner).post(f"/jobs/{search.pk}/kill-runner", follow=True)
    assert "has a checkpoint now" in text_of(answer)
    assert runner.poll() is None


@pytest.mark.parametrize(("who", "is_demo", "status"), [("owner", False, 404), ("trainer", True, 403)])
def test_nobody_else_kills_a_runner_and_outside_of_a_demo_nobody_does(
    who: str,
    is_demo: bool,
    status: int,
    people: People,
    search: Job,
    runner: "subprocess.Popen[bytes]",
    settings: SettingsWrapper,
) -> None:
    settings.TRAINYARD_DEMO = is_demo
    browser, address = browser_of(getattr(people, who)), f"/jobs/{search.pk}/kill-runner"
    assert address not in browser.get(f"/jobs/{search.pk}").content.decode()
    assert browser.post(address).status_code == status
    assert runner.poll() is None


def test_the_table_of_the_demo_has_the_same_bytes_each_time_and_gaps() -> None:
    content = orders()
    assert content == orders()
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    assert len({row["order_id"] for row in rows}) == len(rows) == 2_000
    assert any(row["age"] == "" for row in rows) and any("," in row["price"] for row in rows)


def test_the_rows_of_the_table_are_sent_by_name_without_id_and_target() -> None:
    row = {"order_id": "R1", "city": "", "gift": 1.0, "price": 5.5, "age": None, "returned": "yes"}
    inputs, classes = TABLE.examples({"rows": [row]})
    assert inputs == [{"city": None, "gift": True, "price": 5.5, "age": None}]
    assert classes == [1]


def test_a_single_probability_is_that_of_the_second_class() -> None:
    assert [class_of(row) for row in ([0.4], [0.6], [0.1, 0.2, 0.7])] == [0, 1, 2]
