"""Runs the whole workflow through the REST API and the prediction server.

Search, retrain, ensemble, quantize and register; one user requests a promotion and another approves it; the
model is served; a second version replaces it and is rolled back.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx2

from webapp.demo.client import Body, Client, DemoError, wait_for
from webapp.demo.scenario import Prediction, Row, Scenario, class_of

Report = Callable[[str], None]

PROJECT = "demo"

JOB_SECONDS = 1200.0
STEP_SECONDS = 180.0
PERSON_SECONDS = 2.0
UNDECIDED = ("gating", "pending", "approved")
"""States of a request that is not decided, or whose release is being made."""
FINAL = ("completed", "failed", "stopped")


@dataclass
class Flow:
    """One workflow run. `trainer` and `approver` are two users' clients.

    Attributes:
        scenario: the data, the model and the experiment.
        web: the dashboard's address.
        serving: the prediction server's address.
        by_hand: whether the last approval is left to a person at the pages.
        submitted: called with the job's id once it is submitted.
    """

    scenario: Scenario
    trainer: Client
    approver: Client
    web: str
    serving: str
    report: Report
    by_hand: bool = False
    submitted: Callable[[int], None] = lambda _job: None
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """Return the registered model's name."""
        return self.scenario.model

    def run(self) -> Body | None:
        """Run all steps. With `by_hand`, end with the request whose approval is left to a person; return it.

        Raises:
            DemoError: a step failed.
        """
        self.prepare()
        job = self.search()
        versions = {entry["what"]: entry["number"] for entry in job["results"]["versions"]}
        first, second = versions["best"], versions["ensemble"]
        self.approve(self.request(first, "The best single model of the search."), first)
        self.predict(first)
        request = self.request(second, "The ensemble of the best three.")
        if self.by_hand:
            return request
        self.approve(request, second)
        self.predict(second)
        self.roll_back(second)
        return None

    def prepare(self) -> None:
        """Create the project with both users, and wait for the data set."""
        self.trainer.post("/projects", {"slug": PROJECT, "name": "Demo"}, okay=(409,))
        self.trainer.put(f"/projects/{PROJECT}/members", {"user": self.approver.name, "role": "approver"})
        file = self.scenario.csv
        self._wait_for_data(1 if file is None else self._upload(file()))
        self.report(f"Project {PROJECT}: {self.trainer.name} trains, {self.approver.name} approves.")

    def _upload(self, content: bytes) -> int:
        """Upload a file, as a new version if the data set exists; return the version's number."""
        name = f"{self.scenario.dataset}.csv"
        form = {"project": PROJECT, "slug": self.scenario.dataset}
        response = self.trainer.upload("/datasets", form, name, content, okay=(409,))
        if "slug" in response:
            return 1
        versions = f"/datasets/{self.scenario.dataset}/versions"
        return int(self.trainer.upload(versions, form, name, content)["number"])

    def _wait_for_data(self, number: int) -> None:
        dataset = self.scenario.dataset
        version = wait_for(
            lambda: self._profiled(self._dataset(f"versions/{number}")),
            seconds=STEP_SECONDS,
            what=f"data set {dataset} to be profiled",
        )
        self.report(f"Data set {dataset} v{number}: {version['rows']} rows.")
        for column in version["columns"]:
            if column["role"] is not None:
                why = f", {column['reason']}" if column["reason"] else ""
                self.report(f"  {column['name']}: {column['role']}, {column['type']}{why}")

    def _dataset(self, place: str) -> Body:
        """Return the API's JSON for a place below the data set."""
        # A bundled one belongs to no project.
        query = {} if self.scenario.csv is None else {"project": PROJECT}
        return self.trainer.get(f"/datasets/{self.scenario.dataset}/{place}", **query)

    def _profiled(self, version: Body) -> Body | None:
        if version["state"] == "failed":
            raise DemoError(f"data set {self.scenario.dataset} cannot be read: {version['error']}")
        return version if version["state"] == "ready" else None

    def search(self) -> Body:
        """Submit the experiment and report its progress until it ends."""
        chosen = self.scenario
        spec = chosen.watched_spec if self.by_hand else chosen.spec
        body = {"project": PROJECT, "name": chosen.title, "spec": spec}
        plan = self.trainer.post("/experiments/validate", body)["plan"]
        experiment = self.trainer.post("/experiments", body)
        job_id = self.trainer.post(f"/experiments/{experiment['id']}/submit")["job"]
        self.report(
            f"Job {job_id}: {plan['trials']} trials, {plan['executions']} executions on {chosen.dataset}."
        )
        self.submitted(job_id)
        started = time.monotonic()
        job = self._watch(job_id)
        if job["state"] != "completed":
            raise DemoError(f"job {job_id} is {job['state']}: {job['error']}")
        for name, metrics in job["results"]["candidates"].items():
            self.facts[f"test accuracy, {name}"] = f"{_value(metrics['test']['accuracy']):.4f}"
        accuracy = _value(job["results"]["metrics"]["test"]["accuracy"])
        if accuracy < chosen.min_accuracy:
            raise DemoError(f"test accuracy {accuracy:.4f} is below {chosen.min_accuracy}")
        self.facts["search to registered versions"] = f"{time.monotonic() - started:.0f} s"
        return job

    def _watch(self, job_id: int) -> Body:
        last_line = ""
        deadline = time.monotonic() + JOB_SECONDS
        while time.monotonic() < deadline:
            job = self.trainer.get(f"/jobs/{job_id}")
            line = _progress_line(job)
            if line != last_line:
                self.report(line)
                last_line = line
            if job["state"] in FINAL:
                return job
            time.sleep(2)
        raise DemoError(f"job {job_id} did not end in {JOB_SECONDS:.0f} s")

    def request(self, version: int, comment: str) -> Body:
        """Request a promotion, wait for its gates, and check that self-approval is refused."""
        wait_for(
            lambda: self._candidate(version), seconds=STEP_SECONDS, what=f"version {version} to validate"
        )
        request = {
            "model": self.model,
            "version": version,
            "stage": "production",
            "comment": comment,
        }
        promotion = self.trainer.post("/promotions", request)
        address = f"/promotions/{promotion['id']}"
        gated = wait_for(
            lambda: self._gated(address), seconds=STEP_SECONDS, what=f"the gates of version {version}"
        )
        gates = ", ".join(f"{gate['name']} {gate['state']}" for gate in gated["gates"])
        self.report(f"Version {version} of {self.model}: {gates}.")
        if gated["state"] != "pending":
            raise DemoError(f"promotion {promotion['id']} is {gated['state']}: {gates}")
        if (status := self.trainer.refused(f"{address}/approve", {"comment": "my own"})) != 403:
            raise DemoError(f"{self.trainer.name} could approve their own request: {status}")
        return gated

    def approve(self, request: Body, version: int) -> None:
        """Approve a request as the second person, and wait for the release."""
        address = f"/promotions/{request['id']}"
        accept = [gate["name"] for gate in request["gates"] if gate["state"] == "not_evaluated"]
        self.approver.post(f"{address}/approve", {"comment": "Looks correct.", "accept": accept})
        live = wait_for(lambda: self._released(address), seconds=STEP_SECONDS, what="the release")
        self.report(
            f"{self.approver.name} approved: version {version} is live, generation {live['generation']}."
        )

    def wait_for_person(self, request: Body) -> None:
        """Ask a person to decide a request, wait until it is decided, and report what can follow."""
        who = self.approver.name
        self.report(
            f"The last approval is yours: version {request['version']} of {self.model} waits for {who}."
        )
        self.report(f"  As {who}, open {self.web}/approvals/{request['id']} and approve it.")
        while (promotion := self.trainer.get(f"/promotions/{request['id']}"))["state"] in UNDECIDED:
            time.sleep(PERSON_SECONDS)
        if promotion["state"] != "released":
            self.report(f"The request is {promotion['state']}; the first version stays live.")
            return
        self.report(f"Version {promotion['version']} is live, generation {promotion['generation']}.")
        self.report(f"  Roll it back on {self.web}/endpoints/{self.model}: answers change within a second.")

    def _candidate(self, version: int) -> bool:
        state = self.trainer.get(f"/models/{self.model}/versions/{version}")["state"]
        if state == "invalid":
            raise DemoError(f"version {version} is invalid")
        return bool(state == "candidate")

    def _gated(self, address: str) -> Body | None:
        promotion = self.trainer.get(address)
        return None if promotion["state"] == "gating" else promotion

    def _released(self, address: str) -> Body | None:
        promotion = self.trainer.get(address)
        return promotion if promotion["state"] == "released" else None

    def predict(self, version: int) -> None:
        """Predict some data rows and compare the predictions with their classes."""
        rows, classes = self._examples()
        served, answers = self._predict(rows)
        if served != version:
            raise DemoError(f"version {served} answered, not {version}")
        correct = sum(class_of(row) == label for row, label in zip(answers, classes, strict=True))
        things = self.scenario.things
        self.report(f"Version {version} classifies {correct} of {len(rows)} {things} correctly.")
        # A few rows vary more than the test rows.
        if correct < (self.scenario.min_accuracy - 0.05) * len(rows):
            raise DemoError(f"only {correct} of {len(rows)} predictions are correct")

    def _examples(self) -> tuple[list[Row], list[int]]:
        return self.scenario.examples(self._dataset("versions/1/preview"))

    def _predict(self, rows: list[Row]) -> tuple[int, list[Prediction]]:
        answer = httpx2.post(
            f"{self.serving}/v1/models/{self.model}:predict", json={"instances": rows}, timeout=30
        )
        if answer.status_code != 200:
            raise DemoError(f"prediction: {answer.status_code} {answer.text[:300]}")
        return int(answer.headers["X-Trainyard-Model-Version"]), answer.json()["predictions"]

    def roll_back(self, bad: int) -> None:
        """Roll back the newest release and measure the time until it shows in the predictions."""
        rows, _ = self._examples()
        started = time.monotonic()
        back = self.approver.post(f"/models/{self.model}/rollback", {"reason": "Rollback in the demo."})
        wait_for(
            lambda: self._predict(rows[:1])[0] == back["version"],
            seconds=30,
            what="the rollback",
            every=0.02,
        )
        seconds = time.monotonic() - started
        self.report(
            f"Rolled back from version {bad} to {back['version']}: answers changed after {seconds:.2f} s."
        )
        self.facts["rollback visible in answers after"] = f"{seconds:.2f} s"


def _value(metric: object) -> float:
    return float(metric["value"] if isinstance(metric, dict) else metric)  # type: ignore[arg-type]


def _progress_line(job: Body) -> str:
    progress = job["progress"]
    running = next((s["kind"] for s in job["steps"] if s["state"] in ("starting", "running")), job["state"])
    left = progress["eta_seconds"]
    eta = f", about {left:.0f} s left" if left else ""
    done = f"{progress['done']:.0f} of {progress['total']:.0f} {progress['unit']}"
    best = job["results"].get("best_trial")
    score = f", best {best['score']:.4f}" if best else ""
    return f"  {job['state']}, {running}: {done}{score}{eta}"
