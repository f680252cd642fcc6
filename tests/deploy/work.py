"""What people and clients do with the installation, as the tests need it."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx2

from tests.deploy.team import DASHBOARD, PREDICTIONS, PROJECT, Team
from tests.flow.specs import Spec, search, spec
from tests.ops.conftest import wait_for
from webapp.demo.client import Body, DemoError

DATASET = MODEL = "kinds"
FINAL = ("completed", "failed", "stopped")
SHORT: Spec = {"epochs": 5, "batch_size": 16, "learning_rate": 0.02, "seed": 3}
SEARCH = spec(
    DATASET,
    search=search(max_trials=2, executions_per_trial=1),
    fit=SHORT,
    after={"retrain": {"top": 1}, "register": {"model": MODEL, "what": ["best"]}},
)
OTHER_SEARCH: Spec = {**SEARCH, "fit": {**SHORT, "seed": 4}}
"""The same search with other weights: equal models would be the same version."""
QUICK_TRAINING = spec(DATASET, fit=SHORT, after={})
ENDLESS = spec(
    DATASET,
    model={"kind": "template", "template": "mlp", "args": {"units": 128, "layers": 3}},
    fit={"epochs": 100_000, "batch_size": 1, "learning_rate": 0.001, "seed": 3},
    after={},
)
ROW = {"a": 1, "b": 2}
CSV = "a,b,kind\n" + "".join(f"{i % 7},{i * 3 % 11},{'x' if i % 7 > 3 else 'y'}\n" for i in range(200))
FIGURES: dict[str, Any] = {}
"""The measured figures, which the last test prints."""


def upload(team: Team) -> None:
    """Send a table through the proxy, and wait until a worker has read it."""
    form = {"project": PROJECT, "slug": DATASET, "target": "kind"}

    def is_sent() -> bool:
        # After an outage of all web servers, the proxy has connections that end with the first request.
        with suppress(DemoError):
            team.ada.upload("/datasets", form, "kinds.csv", CSV.encode(), okay=(409,))
            return True
        return False

    wait_for(is_sent, "the proxy")

    def ready() -> bool:
        state = team.ada.get(f"/datasets/{DATASET}/versions/1", project=PROJECT)["state"]
        assert state != "failed"
        return bool(state == "ready")

    wait_for(ready, "the data")


def submit(team: Team, body: Spec, name: str) -> int:
    """Queue an experiment, and return its job."""
    experiment = team.ada.post("/experiments", {"project": PROJECT, "name": name, "spec": body})
    return int(team.ada.post(f"/experiments/{experiment['id']}/submit")["job"])


def until_completed(team: Team, job: int) -> None:
    """Wait until a job has ended well."""

    def ended() -> Body | None:
        found = team.ada.get(f"/jobs/{job}")
        return found if found["state"] in FINAL else None

    found = wait_for(ended, f"the end of job {job}", 600)
    assert found["state"] == "completed", found["error"]


def request_release(team: Team, version: int) -> str:
    """Ask for the production of a version; return the request's address when its gates have ended."""

    def is_candidate() -> bool:
        return bool(team.ada.get(f"/models/{MODEL}/versions/{version}")["state"] == "candidate")

    wait_for(is_candidate, f"version {version}")
    wish = {"model": MODEL, "version": version, "stage": "production", "comment": "A test asks."}
    address = f"/promotions/{team.ada.post('/promotions', wish)['id']}"
    wait_for(lambda: team.ada.get(address)["state"] != "gating", "the gates")
    assert team.ada.get(address)["state"] == "pending"
    return address


def approve(team: Team, address: str) -> None:
    """Approve a request, as another person than the one who made it."""
    gates = team.ada.get(address)["gates"]
    accepted = [gate["name"] for gate in gates if gate["state"] == "not_evaluated"]
    team.grace.post(f"{address}/approve", {"comment": "Fine.", "accept": accepted})


def released(team: Team, address: str) -> Body:
    """Wait until all prediction servers that are up serve an approved request."""

    def done() -> Body | None:
        promotion = team.ada.get(address)
        return promotion if promotion["state"] == "released" else None

    return wait_for(done, "the release")


def served_model(team: Team) -> None:
    """Have a version in production, whichever test comes first."""
    upload(team)
    if not team.serves:
        until_completed(team, submit(team, SEARCH, "search"))
        address = request_release(team, 1)
        approve(team, address)
        released(team, address)
        team.serves = True


def training(team: Team) -> int:
    """Return the endless training, which runs and has a copy of a checkpoint in the store."""
    upload(team)
    if team.training is None:
        team.training = submit(team, ENDLESS, "endless")
    job = team.training
    wait_for(lambda: state_of(team, job)["copied"] > 0, "a checkpoint", 300)
    return job


def newest_version(team: Team) -> int:
    """Return the number of the model's newest version."""
    return max(int(row["number"]) for row in team.ada.get(f"/models/{MODEL}/versions")["items"])


def cut_off(team: Team) -> list[str]:
    """Return the prediction servers that learn of no release."""
    replicas = team.ada.get(f"/endpoints/{MODEL}")["replicas"]
    return [replica["name"] for replica in replicas if replica["cut_off_since"]]


def workers_up(team: Team) -> int:
    """Return the number of workers that are up."""
    return sum(worker["state"] == "up" for worker in team.ada.get("/workers")["items"])


def state_of(team: Team, job: int) -> Body:
    """Return a training's attempts, read in the database."""
    answer: Body = team.call("tests.deploy.inside", "training", job)
    return answer


def is_ready(team: Team, name: str) -> bool:
    """Return whether a prediction server answers for its models."""
    try:
        address = f"http://{team[name].address}:8501/v2/health/ready"
        return httpx2.get(address, trust_env=False, timeout=5).is_success
    except httpx2.HTTPError:
        return False


def until_trained_further(team: Team, job: int, seconds: float = 180) -> float:
    """Wait until the newest attempt has reported further epochs; return the seconds that it took."""
    before = state_of(team, job)["attempts"][-1]
    began = time.monotonic()

    def further() -> bool:
        attempts = state_of(team, job)["attempts"]
        return bool(attempts[-1]["epochs"] > before["epochs"]) and attempts[-1]["worker"] == before["worker"]

    wait_for(further, "further epochs", seconds)
    return time.monotonic() - began


@dataclass
class Requests:
    """Requests for predictions, and how many were answered."""

    sent: int = 0
    lost: list[str] = field(default_factory=list)
    slowest: float = 0.0


@contextmanager
def predicting(team: Team, *urls: str) -> Iterator[Requests]:
    """Ask for predictions all the time, at each address in turn; by default through the proxy."""
    addresses = urls or (PREDICTIONS,)
    client = httpx2.Client(timeout=30, headers={"Authorization": f"Bearer {team.predict_token}"})

    def ask(seen: Requests) -> None:
        url = addresses[seen.sent % len(addresses)]
        try:
            answer = client.post(f"{url}/v1/models/{MODEL}:predict", json={"instances": [ROW]})
            if answer.status_code != 200:
                seen.lost.append(f"{url}: {answer.status_code} {answer.text[:200]}")
        except httpx2.HTTPError as error:
            seen.lost.append(f"{url}: {error!r}")

    with client, _asking(ask, pause=0.02) as seen:
        yield seen


@contextmanager
def visiting(url: str, browser: httpx2.Client) -> Iterator[Requests]:
    """Open a page of the dashboard all the time."""

    def ask(seen: Requests) -> None:
        try:
            answer = browser.get(url)
            if answer.status_code != 200:
                seen.lost.append(f"{answer.status_code} {answer.headers.get('location', '')}")
        except httpx2.HTTPError as error:
            seen.lost.append(repr(error))

    with _asking(ask, pause=0.1) as seen:
        yield seen


@contextmanager
def _asking(ask: Callable[[Requests], None], *, pause: float) -> Iterator[Requests]:
    seen, over = Requests(), threading.Event()

    def ask_again() -> None:
        while not over.wait(pause):
            began = time.monotonic()
            ask(seen)
            seen.sent += 1
            seen.slowest = max(seen.slowest, time.monotonic() - began)

    thread = threading.Thread(target=ask_again, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join(60)


def log_in(team: Team, name: str) -> httpx2.Client:
    """Return the browser of a person who has logged in through the proxy, by a link."""
    browser = httpx2.Client(base_url=DASHBOARD, timeout=150)
    link = team.call("tests.flow.people", "login", name)
    page = browser.get(link)
    assert page.status_code == 200, page.text
    form = {"csrfmiddlewaretoken": csrf_token(page.text)} if "csrfmiddlewaretoken" in page.text else {}
    entered = browser.post(link, data=form, headers={"Referer": f"{DASHBOARD}{link}"})
    assert entered.status_code in (200, 302, 303), entered.text
    return browser


def cookies_of(browser: httpx2.Client) -> str:
    """Return the header with a browser's cookies."""
    return "; ".join(f"{cookie.name}={cookie.value}" for cookie in browser.cookies.jar)


def csrf_token(html: str) -> str:
    """Return the token of the form on a page."""
    return html.split('name="csrfmiddlewaretoken" value="')[1].split('"')[0]


def seconds_until(condition: Callable[[], object], what: str, patience: float = 120) -> float:
    """Wait for a condition; return the seconds until it held."""
    began = time.monotonic()
    wait_for(condition, what, patience, interval=0.1)
    return time.monotonic() - began


def note(name: str, **figures: Any) -> None:
    """Keep and print measured figures."""
    rounded = {key: round(value, 1) if isinstance(value, float) else value for key, value in figures.items()}
    FIGURES[name] = rounded
    sys.stdout.write(f"{name}: {rounded}\n")
