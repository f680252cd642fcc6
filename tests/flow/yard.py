"""A running installation: real broker, web server, scheduler, worker, runners and prediction server."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.flow import rows
from tests.flow.disk import small_disk
from tests.ops.conftest import PATIENCE, ROOT, Yard, wait_for
from webapp.demo.client import Body, Client

FINAL = ("completed", "failed", "stopped")
PROJECT = "flow"
JOB_SECONDS = 900.0

QUICK = {
    "TRAINYARD_BROKER": "embedded",
    "TRAINYARD_STANDBY": "1",
    "TRAINYARD_MIN_FREE_BYTES": "100000000",
    "TRAINYARD_NODE_POLL": "0.5",
    "TRAINYARD_NODE_RETRY_LIMIT": "1",
    "TRAINYARD_NODE_RENEW": "2",
    "TRAINYARD_NODE_SILENCE": "10",
}
"""Short intervals, so that tests are fast."""


class RunningYard(Yard):
    """An installation that is up, with a trainer `ada` and an approver `grace`."""

    urls: dict[str, Any]
    tokens: dict[str, str]
    ada: Client
    grace: Client

    def __init__(self, home: Path, **environment: str) -> None:
        super().__init__(home, **environment)
        self.no_disk = "this installation's home is a folder of a larger disk"
        self._inside: subprocess.Popen[str] | None = None
        self._http = httpx2.Client(timeout=60)  # each new client would read all certificates again

    def open(self, *, slots: int = 2, database: Path | None = None) -> None:
        """Start everything, meet both people, wait until the bundled data can be trained on.

        Args:
            slots: the slots of the worker.
            database: copied into the new home, which otherwise begins without one.
        """
        if database is not None:
            shutil.copy(database, self.home / "trainyard.sqlite3")
        self.start("--slots", str(slots))
        self.urls = self.ready()
        self.tokens = self.call("tests.flow.people", "tokens")
        self.ada, self.grace = (
            Client(self.urls["web"], token, name, patience=PATIENCE) for name, token in self.tokens.items()
        )
        self.ada.post("/projects", {"slug": PROJECT, "name": "Flow"}, okay=(409,))
        self.ada.put(f"/projects/{PROJECT}/members", {"user": "grace", "role": "approver"})
        for name in ("iris", "diabetes"):
            self.until_ready(name)

    def call(self, module: str, function: str, *arguments: Any) -> Any:
        """Call a function inside this installation, on its database and files; one process serves all."""
        if self._inside is None:
            say = "from tests.flow.inside import answer_calls; answer_calls()"
            self._inside = subprocess.Popen(
                [sys.executable, "manage.py", "shell", "--no-imports", "-c", say],
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self._inside.stdin
        assert self._inside.stdout
        self._inside.stdin.write(json.dumps([module, function, arguments]) + "\n")
        self._inside.stdin.flush()
        said = json.loads(self._inside.stdout.readline())
        assert "answer" in said, said["error"]
        return said["answer"]

    def end(self) -> None:
        """See `Yard.end`."""
        if self._inside is not None:
            self._inside.communicate()  # the end of its input is its end
            self._inside = None
        super().end()

    # Data

    def until_ready(self, dataset: str, version: int = 1, **query: str) -> Body:
        """Wait until a data set version is profiled."""

        def final() -> Body | None:
            profiled = self.ada.get(f"/datasets/{dataset}/versions/{version}", **query)
            return None if profiled["state"] == "preparing" else profiled

        profiled = wait_for(final, f"data set {dataset} to be profiled")
        assert profiled["state"] == "ready", profiled
        return profiled

    def upload(self, slug: str, name: str, content: bytes, **fields: str) -> Body:
        """Send a file as a new data set of the project and wait until a worker has read it."""
        answer = self._http.post(
            f"{self.urls['web']}/api/v1/datasets",
            headers=self.bearer("ada"),
            data={"project": PROJECT, "slug": slug, **fields},
            files={"file": (name, content)},
        )
        assert answer.status_code == 201, answer.text
        return self.until_ready(slug, project=PROJECT)

    # Jobs

    def submit(self, spec: Body, *, name: str = "flow") -> int:
        """Queue an experiment and return its job's id."""
        experiment = self.ada.post("/experiments", {"project": PROJECT, "name": name, "spec": spec})
        return int(self.ada.post(f"/experiments/{experiment['id']}/submit")["job"])

    def job(self, job_id: int) -> Body:
        """Return a job."""
        return self.ada.get(f"/jobs/{job_id}")

    def until_final(self, job_id: int, seconds: float = JOB_SECONDS) -> Body:
        """Wait until a job has ended."""
        return self.until(job_id, lambda job: job["state"] in FINAL, "its end", seconds, of="state")

    def until_completed(self, job_id: int) -> Body:
        """Wait until a job has ended well."""
        job = self.until_final(job_id)
        assert job["state"] == "completed", (job["error"], self.log_of(job_id))
        return job

    def until(
        self,
        job_id: int,
        condition: Callable[[Body], bool],
        what: str,
        seconds: float = JOB_SECONDS,
        *,
        of: str = "state, why_waiting, progress",
    ) -> Body:
        """Wait until a job fulfils a condition; `of` names the columns that decide."""

        def holds() -> Body | None:
            job = self.job(job_id)
            return job if condition(job) else None

        query = f"SELECT {of} FROM jobs_job WHERE id = ?"
        return rows.until(
            self.home, query, [job_id], holds, what=f"job {job_id} to reach {what}", seconds=seconds
        )

    def log_of(self, job_id: int) -> str:
        """Return the last lines of a job's log."""
        lines = self.ada.get(f"/jobs/{job_id}/logs", limit=5000)["items"]
        return "\n".join(line["line"] for line in lines[-40:])

    def events_of(self, job_id: int) -> list[Body]:
        """Return all events in a job's log, page after page."""
        events: list[Body] = []
        cursor = 0
        while (page := self.ada.get(f"/jobs/{job_id}/events", after=cursor))["items"]:
            events += page["items"]
            cursor = page["cursor"]
        return events

    # Models

    def gated(self, model: str, version: int) -> tuple[str, Body]:
        """Ask for production and wait for the gates; return the promotion's address and state."""

        def candidate() -> Body | None:
            answer = self.ada.get(f"/models/{model}/versions/{version}")
            return None if answer["state"] == "validating" else answer

        assert wait_for(candidate, f"version {version} to validate")["state"] == "candidate"
        wish = {"model": model, "version": version, "stage": "production", "comment": "A test asks."}
        request = self.ada.post("/promotions", wish)["id"]
        address = f"/promotions/{request}"

        def judged() -> Body | None:
            answer = self.ada.get(address)
            return None if answer["state"] == "gating" else answer

        query = "SELECT state FROM jobs_promotionrequest WHERE id = ?"
        what = f"the gates of version {version}"
        return address, rows.until(self.home, query, [request], judged, what=what)

    def promote(self, model: str, version: int) -> Body:
        """Take a version to production by both people; return the released promotion."""
        address, waiting = self.gated(model, version)
        assert waiting["state"] == "pending", waiting["gates"]
        open_gates = [gate["name"] for gate in waiting["gates"] if gate["state"] == "not_evaluated"]
        self.grace.post(f"{address}/approve", {"comment": "Fine.", "accept": open_gates})

        def released() -> Body | None:
            answer = self.ada.get(address)
            return answer if answer["state"] == "released" else None

        return wait_for(released, f"version {version} to be served")

    def predict(self, model: str, examples: list[Any]) -> tuple[int, list[Any]]:
        """Return the version that answered and its answers."""
        url = f"{self.urls['serving']}/v1/models/{model}:predict"
        answer = self._http.post(url, json={"instances": examples})
        assert answer.status_code == 200, answer.text
        return int(answer.headers["X-Trainyard-Model-Version"]), answer.json()["predictions"]

    def bearer(self, name: str) -> dict[str, str]:
        """Return the header that a script of this person sends."""
        return {"Authorization": f"Bearer {self.tokens[name]}"}


@contextmanager
def open_yard(home: Path, **environment: str) -> Iterator[RunningYard]:
    """Give an installation, on a small separate disk where one can be mounted. Leave no process behind."""
    with small_disk(home) as why_not:
        installation = RunningYard(home, **(QUICK | environment))
        installation.no_disk = why_not
        try:
            yield installation
        finally:
            installation.end()
